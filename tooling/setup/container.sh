#!/usr/bin/env bash
# Builds the container images of the Dockerfile with buildah from Debian, as root, and runs the program of each. Writes
# what each image contains to .tools/sbom: the npm packages as CycloneDX, and the Debian packages as a list. Without access
# to a registry of images, a minimal Debian with this machine's Node.js takes the place of the base image.
#
# Usage: tooling/setup/container.sh [TARGET...]      default: launcher cli; builder downloads 35 MB of packages
#
#   --all   all targets
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# Containers and CI machines often refuse the namespaces of other isolations, and the mounts of overlay. The driver vfs
# copies the whole image for every step.
export BUILDAH_ISOLATION=chroot
buildah --storage-driver "${STORAGE_DRIVER:=overlay}" info >/dev/null 2>&1 || STORAGE_DRIVER=vfs
export STORAGE_DRIVER

targets=("$@")
[ $# -gt 0 ] || targets=(launcher cli)
[ "${1-}" != --all ] || targets=(launcher builder gateway bridge-github cli)
[ "$(id -u)" -eq 0 ] || { echo 'error: run it as root' >&2; exit 1; }
command -v buildah >/dev/null || { echo 'error: apt-get install buildah mmdebstrap' >&2; exit 1; }

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Prints the name of an image with a minimal Debian, this machine's Node.js, and its additional authorities for TLS.
local_base() {
  local image=localhost/nodepool-node:$(node --version) npm
  if ! buildah images --quiet "$image" >/dev/null 2>&1; then
    npm=$(dirname "$(dirname "$(readlink -f "$(command -v npm)")")")
    mmdebstrap --quiet --variant=minbase --include=ca-certificates bookworm "$scratch/root.tar" >&2
    mkdir -p "$scratch/npm" && cp -r "$npm/." "$scratch/npm"
    cp "$(readlink -f "$(command -v node)")" "$scratch/node"
    cp "${NODE_EXTRA_CA_CERTS:-/dev/null}" "$scratch/authorities.pem"
    cat >"$scratch/Dockerfile" <<'BASE'
FROM scratch
ADD root.tar /
COPY node /usr/local/bin/node
COPY npm /usr/local/lib/node_modules/npm
COPY authorities.pem /etc/ssl/additional.pem
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm \
  && ln -s ../lib/node_modules/npm/bin/npx-cli.js /usr/local/bin/npx
ENV NODE_EXTRA_CA_CERTS=/etc/ssl/additional.pem
BASE
    buildah build --quiet --tag "$image" "$scratch" >&2
  fi
  echo "$image"
}

base=$(sed -nE 's/^ARG NODE_IMAGE=(.+)$/\1/p' Dockerfile)
if ! buildah pull --quiet "$base" >/dev/null 2>&1; then
  echo "no access to $base: a minimal Debian takes its place"
  base=$(local_base)
fi

for target in "${targets[@]}"; do
  image=localhost/nodepool-$target
  buildah build --format docker --layers --build-arg "NODE_IMAGE=$base" --target "$target" --tag "$image" .
  container=$(buildah from "$image")
  case $target in
    cli) program=nodepool ;;
    bridge-github) program=nodepool-github ;;
    *) program=nodepool-$target ;;
  esac
  # shellcheck disable=SC2016
  buildah run "$container" -- sh -euc '[ "$(id -un)" = nodepool ]; "$1" --version; command -v tini' sh "$program"
  mkdir -p .tools/sbom
  buildah run "$container" -- cat /opt/nodepool/nodepool.cdx.json >".tools/sbom/image-$target.cdx.json"
  buildah run "$container" -- dpkg-query --show >".tools/sbom/image-$target.debian.txt"
  buildah rm "$container" >/dev/null
  echo "$image: $program runs as the user nodepool"
done
