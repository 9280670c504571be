# Container images of Nodepool: targets launcher (the default), builder, gateway, bridge-github and cli; see
# docs/deploying.md#containers.
#
#   podman build --target launcher --tag nodepool-launcher .

ARG NODE_IMAGE=docker.io/library/node:24.21.0-bookworm-slim

# Packs the packages of this checkout, and installs them as a site does, without development dependencies. One layer keeps
# the installation only.
FROM ${NODE_IMAGE} AS build
WORKDIR /src
COPY . .
RUN npm install --global "$(node -p 'require("./package.json").packageManager')" \
  && pnpm install --frozen-lockfile --loglevel=error \
  && pnpm pack:all --site /packages \
  && mkdir /opt/nodepool && cd /opt/nodepool \
  && npm init --yes \
  && npm install --omit=dev --no-audit --no-fund --ignore-scripts /packages/*.tgz \
  && npm sbom --omit=dev --sbom-format=cyclonedx >nodepool.cdx.json \
  && rm -rf /src/* /packages /root/.cache /root/.local /root/.npm

FROM ${NODE_IMAGE} AS base
ENV PATH=/opt/nodepool/node_modules/.bin:$PATH NODE_ENV=production
RUN apt-get update \
  && apt-get install --yes --no-install-recommends openssh-client tini \
  && rm -rf /var/lib/apt/lists/* \
  && groupadd --system --gid 10001 nodepool \
  && useradd --system --uid 10001 --gid nodepool --home-dir /var/lib/nodepool --create-home nodepool \
  && install --directory --owner=nodepool --group=nodepool /etc/nodepool /var/log/nodepool
COPY --from=build /opt/nodepool /opt/nodepool
WORKDIR /var/lib/nodepool
USER nodepool

FROM base AS cli
HEALTHCHECK NONE
ENTRYPOINT ["/usr/bin/tini", "--", "nodepool"]
CMD ["--help"]

# Needs the privileges of disk-image-create: docs/deploying.md#containers.
FROM base AS builder
USER root
RUN apt-get update \
  && apt-get install --yes --no-install-recommends debootstrap gdisk kpartx python3-diskimage-builder qemu-utils sudo \
  && rm -rf /var/lib/apt/lists/* \
  && echo 'nodepool ALL=(root) NOPASSWD:SETENV: /usr/bin/disk-image-create' > /etc/sudoers.d/nodepool
USER nodepool
EXPOSE 8006
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s CMD ["node", "-e", "fetch('http://127.0.0.1:8006/health').then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["/usr/bin/tini", "--", "nodepool-builder"]
CMD ["-c", "/etc/nodepool/nodepool.yaml", "--status-port", "8006"]

FROM base AS gateway
EXPOSE 8007
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s CMD ["node", "-e", "fetch('http://127.0.0.1:8008/live').then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["/usr/bin/tini", "--", "nodepool-gateway"]
CMD ["-c", "/etc/nodepool/nodepool.yaml", "--status-port", "8008"]

FROM base AS bridge-github
EXPOSE 8009
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s CMD ["node", "-e", "fetch('http://127.0.0.1:8009/live').then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["/usr/bin/tini", "--", "nodepool-github"]
CMD ["-c", "/etc/nodepool/nodepool.yaml", "-g", "/etc/nodepool/github.yaml", "--status-port", "8009"]

FROM base AS launcher
EXPOSE 8005
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.NODEPOOL_WEBAPP_PORT ?? 8005}/health`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["/usr/bin/tini", "--", "nodepool-launcher"]
CMD ["-c", "/etc/nodepool/nodepool.yaml"]
