/** The site of the scenario: ZooKeeper, launchers with the OpenStack driver, and requestors. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { answerText } from '@nodepool/core';
import { freePorts, zooKeeperForTests, type ZooKeeperForTests } from '@nodepool/dev-zookeeper';
import {
  labelsOffered,
  noNodesLeft,
  registeredPools,
  startLauncher,
  startRequestor,
  type Program,
  type RequestorResult,
  zooKeeperServers,
} from '@nodepool/harness';
import { connect, type ZooKeeper } from '@nodepool/zookeeper';

export const LABEL = 'tiny';
const START_DEADLINE_MS = 120_000;
const CLEAN_DEADLINE_MS = 600_000;
const REQUEST_TIMEOUT_S = 1800;
/** Session timeout in seconds: short, so that locks of a killed launcher are released soon. */
const SESSION_TIMEOUT_S = 10;

/** A clouds.yaml instead of that of the site. */
export interface LauncherOptions {
  readonly cloudsYaml?: string;
}

export interface ProviderOptions {
  /** Unique name, which identifies the provider's servers. */
  readonly name: string;
  /** Name in clouds.yaml. */
  readonly cloud: string;
  readonly floatingIp?: boolean;
  readonly bootFromVolume?: boolean;
  /** Providers with a lower value are used first. Default: the launcher's default. */
  readonly priority?: number;
  /** If true, only the cloud's refusals limit the number of servers. Default false. */
  readonly ignoreQuota?: boolean;
}

/** A running launcher and its metrics. */
export interface RunningLauncher {
  readonly program: Program;
  /** Returns the number of its calls to the cloud by `<service> <operation>`. */
  apiCalls(): Promise<ReadonlyMap<string, number>>;
}

export class Site {
  private readonly programs: Program[] = [];
  private started = 0;

  private constructor(
    private readonly server: ZooKeeperForTests,
    private readonly zooKeeper: ZooKeeper,
    private readonly cloudsYaml: string,
    /** Folder of configurations and logs. */
    readonly folder: string,
  ) {}

  static async start(cloudsYaml: string): Promise<Site> {
    const folder = mkdtempSync(join(tmpdir(), 'openstack-scenario-'));
    const server = await zooKeeperForTests({ tickTime: 500 });
    const zooKeeper = connect({ servers: server.servers });
    await zooKeeper.connected({ timeoutMs: START_DEADLINE_MS });
    return new Site(server, zooKeeper, cloudsYaml, folder);
  }

  /** Stops all parts and deletes the logs unless `keepLogs` is true. */
  async stop(keepLogs: boolean): Promise<void> {
    await Promise.all(this.programs.map((program) => program.kill()));
    await this.zooKeeper.close();
    await this.server.stop();
    if (!keepLogs) rmSync(this.folder, { recursive: true, force: true });
  }

  /** Starts a launcher with these providers; resolves once all of them offer the label. */
  async launcher(
    providers: readonly ProviderOptions[],
    { cloudsYaml = this.cloudsYaml }: LauncherOptions = {},
  ): Promise<RunningLauncher> {
    const [webappPort = 0] = await freePorts(1);
    const before = await registeredPools(this.zooKeeper);
    const program = await startLauncher({
      name: this.nextName('launcher'),
      folder: this.folder,
      config: configOf(this.server.servers, webappPort, providers),
      env: { OS_CLIENT_CONFIG_FILE: cloudsYaml },
    });
    this.programs.push(program);
    await program.while('registers its pool', START_DEADLINE_MS, (signal) =>
      labelsOffered(this.zooKeeper, [LABEL], signal, before),
    );
    return { program, apiCalls: () => readApiCalls(webappPort, providers) };
  }

  /**
   * Requests `count` nodes, one per request with at most `parallel` (default: all) at once. Resolves when the nodes
   * were used and deleted.
   */
  async ask(count: number, holdSeconds: number, parallel = count): Promise<RequestorResult> {
    const [requests, timeout] = [String(count), String(REQUEST_TIMEOUT_S)];
    const { program, result } = await startRequestor(
      { servers: this.server.servers },
      join(this.folder, `${this.nextName('requestor')}.log`),
      [
        '--labels',
        LABEL,
        '--requests',
        requests,
        '--parallel',
        String(parallel),
        '--hold',
        String(holdSeconds),
        '--timeout',
        timeout,
        '--wait-deleted',
      ],
      { deadlineMs: 2.5 * REQUEST_TIMEOUT_S * 1000 },
    );
    this.programs.push(program);
    return await result;
  }

  /** Resolves once no node record is left. */
  async clean(launcher: RunningLauncher): Promise<void> {
    await launcher.program.while('deletes all nodes', CLEAN_DEADLINE_MS, (signal) =>
      noNodesLeft(this.zooKeeper, signal),
    );
  }

  private nextName(kind: string): string {
    this.started += 1;
    return `${kind}-${this.started}`;
  }
}

function configOf(zooKeeper: string, webappPort: number, providers: readonly ProviderOptions[]): object {
  return {
    webapp: { port: webappPort, listen_address: '127.0.0.1' },
    'zookeeper-servers': zooKeeperServers(zooKeeper),
    'zookeeper-timeout': SESSION_TIMEOUT_S,
    drivers: [{ name: 'openstack', package: dirname(require.resolve('@nodepool/driver-openstack/package.json')) }],
    labels: [{ name: LABEL }],
    providers: providers.map(providerSection),
  };
}

function providerSection(options: ProviderOptions): object {
  const label = {
    name: LABEL,
    'cloud-image': 'test-image',
    'flavor-name': 'm1.tiny',
    ...(options.bootFromVolume === true ? { 'boot-from-volume': true, 'volume-size': 1 } : {}),
  };
  return {
    name: options.name,
    driver: 'openstack',
    cloud: options.cloud,
    rate: 0.01,
    ...(options.priority === undefined ? {} : { priority: options.priority }),
    'launch-timeout': 600,
    'cloud-images': [{ name: 'test-image', username: 'zuul' }],
    pools: [
      {
        name: 'main',
        'host-key-checking': false,
        networks: ['private'],
        labels: [label],
        'auto-floating-ip': options.floatingIp ?? false,
        'ignore-provider-quota': options.ignoreQuota ?? false,
      },
    ],
  };
}

const COUNT = /^nodepool_api_call_duration_seconds_count\{(.*)\} (\S+)$/gm;

async function readApiCalls(port: number, providers: readonly ProviderOptions[]): Promise<ReadonlyMap<string, number>> {
  const signal = AbortSignal.timeout(START_DEADLINE_MS);
  const answer = await fetch(`http://127.0.0.1:${port}/metrics`, { signal });
  const calls = new Map<string, number>();
  for (const [, labels = '', count] of (await answerText(answer.body, { signal })).matchAll(COUNT)) {
    const label = (name: string): string => new RegExp(`${name}="([^"]*)"`).exec(labels)?.[1] ?? '';
    if (!providers.some(({ name }) => name === label('provider'))) continue;
    const key = [label('service'), label('method'), label('operation')].join(' ');
    calls.set(key, (calls.get(key) ?? 0) + Number(count));
  }
  return calls;
}
