/** Launcher configurations with the example driver, as values for `nodepool.yaml`. */

/** ZooKeeper's address in the client format: `host:port,…` and an optional chroot. */
export interface ZooKeeperAddress {
  readonly servers: string;
  /** Paths of PEM files, for mutual TLS. */
  readonly tls?: { readonly ca: string; readonly cert: string; readonly key: string } | undefined;
}

export interface ExampleProvider {
  /** Default `example`. */
  readonly name?: string;
  /** URL of a separate example cloud. Default: a cloud inside the launcher. */
  readonly endpoint?: string;
  /** Settings of the cloud inside the launcher, in the format of the driver's schema, e.g. `{'boot-time': 2}`. */
  readonly cloud?: Readonly<Record<string, unknown>>;
  /** Default: no limit. */
  readonly maxServers?: number;
  /** Names of the pools, each with the limit `maxServers`. Default: `main`. */
  readonly pools?: readonly string[];
  /** Labels of the provider. Default: all of them. */
  readonly labels?: readonly string[];
  /** User to log in as. Default `zuul`. */
  readonly username?: string;
  /** If true, a node becomes ready only when its SSH server answers. Default false. */
  readonly hostKeyChecking?: boolean;
  /** Additional keys of the provider's section, e.g. `{'launch-retries': 1}`. */
  readonly more?: Readonly<Record<string, unknown>>;
}

export interface ExampleConfigOptions {
  readonly zooKeeper: ZooKeeperAddress;
  /** Seconds. Default: the launcher's. */
  readonly sessionTimeout?: number;
  /** Port of the web endpoint, on the loopback interface. */
  readonly webappPort: number;
  /** Names of the labels. */
  readonly labels: readonly string[];
  /** `min-ready` by label. Default: none. */
  readonly minReady?: Readonly<Record<string, number>>;
  /** Default: one provider with the defaults above. */
  readonly providers?: readonly ExampleProvider[];
}

/** Returns the value to write as `nodepool.yaml`. */
export function exampleConfig(options: ExampleConfigOptions): object {
  const { tls } = options.zooKeeper;
  return {
    webapp: { port: options.webappPort, listen_address: '127.0.0.1' },
    'zookeeper-servers': zooKeeperServers(options.zooKeeper.servers),
    ...(tls === undefined ? {} : { 'zookeeper-tls': { ca: tls.ca, cert: tls.cert, key: tls.key } }),
    ...(options.sessionTimeout === undefined ? {} : { 'zookeeper-timeout': options.sessionTimeout }),
    labels: options.labels.map((name) => ({ name, 'min-ready': options.minReady?.[name] ?? 0 })),
    providers: (options.providers ?? [{}]).map((provider) => providerSection(provider, options.labels)),
  };
}

function providerSection(provider: ExampleProvider, allLabels: readonly string[]): object {
  const labels = provider.labels ?? allLabels;
  return {
    name: provider.name ?? 'example',
    driver: 'example',
    ...(provider.endpoint === undefined ? { cloud: provider.cloud ?? {} } : { endpoint: provider.endpoint }),
    ...provider.more,
    'cloud-images': labels.map((name) => ({ name, username: provider.username ?? 'zuul' })),
    pools: (provider.pools ?? ['main']).map((name) => ({
      name,
      ...(provider.maxServers === undefined ? {} : { 'max-servers': provider.maxServers }),
      'host-key-checking': provider.hostKeyChecking ?? false,
      labels: labels.map((label) => ({ name: label, 'cloud-image': label })),
    })),
  };
}

/** Converts `host:port,…/chroot` to the configuration key `zookeeper-servers`. */
export function zooKeeperServers(text: string): object[] {
  const slash = text.indexOf('/');
  const chroot = slash < 0 ? undefined : text.slice(slash);
  const servers = slash < 0 ? text : text.slice(0, slash);
  return servers.split(',').map((server) => {
    const colon = server.lastIndexOf(':');
    const port = Number(server.slice(colon + 1));
    return { host: server.slice(0, colon), port, ...(chroot === undefined ? {} : { chroot }) };
  });
}
