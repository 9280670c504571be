/** A site in operation: ZooKeeper, a cloud, launchers, and requestors. */

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from '@jest/globals';
import {
  freePorts,
  startZooKeeper,
  zooKeeperForTests,
  type RunningZooKeeper,
  type ZooKeeperForTests,
} from '@nodepool/dev-zookeeper';
import {
  conditionMet,
  exampleConfig,
  labelsOffered,
  noNodesLeft,
  Program,
  programPath,
  registeredPools,
  startLauncher,
  writeDaemonConfig,
  startRequestor,
  type ExampleProvider,
  type RequestorKind,
  type RequestorResult,
  type RunningRequestor,
  type ZooKeeperAddress,
} from '@nodepool/harness';
import { connect, isZooKeeperError, sleep, systemClock, type ZooKeeper } from '@nodepool/zookeeper';

export const LABELS = ['debian', 'fedora'] as const;

/** Folder of configurations and logs, by test, kept until the next run for diagnosis. */
const LOGS = join(__dirname, '..', 'logs');
/** Session timeout in seconds: short, so that locks of a killed launcher are released soon. */
const SESSION_TIMEOUT_S = 4;
/** Session timeout of requestors (ms), which survives delays on a busy machine. */
const LONG_SESSION_MS = 60_000;
const START_DEADLINE_MS = 180_000;
const CLEAN_DEADLINE_MS = 240_000;
/** Time between two listings of a cloud, milliseconds. */
const LIST_EVERY_MS = 250;

export interface LauncherSetup {
  readonly providers?: readonly ExampleProvider[];
  readonly minReady?: Readonly<Record<string, number>>;
  /** Sections of providers of any driver, instead of `providers`. */
  readonly sections?: readonly object[];
  /** Labels in addition to `LABELS`. */
  readonly labels?: readonly string[];
}

export interface SiteOptions {
  readonly tls?: boolean;
  /**
   * Maximum session timeout that the server grants (ms). If set, the site has its own server, which can be restarted.
   */
  readonly maxSessionTimeout?: number;
}

export class Site {
  private readonly programs: Program[] = [];
  private readonly webappPorts = new Map<string, number>();
  private started = 0;
  private requestorKind: RequestorKind | undefined;

  private constructor(
    private readonly server: RunningZooKeeper | ZooKeeperForTests,
    /** Holds the configuration and the log of each program. */
    readonly folder: string,
    /** Address for launchers and requestors. */
    readonly address: ZooKeeperAddress,
    /** Connection for the assertions of tests. */
    readonly zooKeeper: ZooKeeper,
  ) {}

  /** Starts a ZooKeeper, or uses one that tests share. With `tls`, the server requires client certificates. */
  static async start(options: SiteOptions = {}): Promise<Site> {
    const server = await startServer(options);
    const folder = join(LOGS, nameOfThisTest());
    rmSync(folder, { recursive: true, force: true });
    const address: ZooKeeperAddress =
      'tls' in server && server.tls !== undefined && server.tlsServers !== undefined
        ? { servers: server.tlsServers, tls: server.tls }
        : { servers: server.servers };
    const zooKeeper = connect({ servers: server.servers });
    await zooKeeper.connected({ timeoutMs: START_DEADLINE_MS });
    return new Site(server, folder, address, zooKeeper);
  }

  /** Stops all parts. */
  async stop(): Promise<void> {
    await Promise.all(this.programs.map((program) => program.kill()));
    await this.zooKeeper.close();
    await this.server.stop();
  }

  /** Starts a launcher with the labels `LABELS`; resolves once it offers them. */
  async launcher(setup: LauncherSetup = {}): Promise<Program> {
    const [webappPort = 0] = await freePorts(1);
    const before = await registeredPools(this.zooKeeper);
    const name = this.nextName('launcher');
    this.webappPorts.set(name, webappPort);
    const launcher = await startLauncher({ name, folder: this.folder, config: this.configOf(name, setup) });
    this.programs.push(launcher);
    await launcher.while('registers its pools', START_DEADLINE_MS, async (signal) => {
      await labelsOffered(this.zooKeeper, LABELS, signal, before);
    });
    return launcher;
  }

  /** Returns the series of a metric with the label that each launcher shows; all launchers must be running. */
  async metric(name: string, label = ''): Promise<readonly string[]> {
    const texts = await Promise.all(
      Array.from(this.webappPorts.values(), async (port) => (await fetch(`http://127.0.0.1:${port}/metrics`)).text()),
    );
    const lines = texts.flatMap((text) => text.split('\n'));
    return lines.filter((line) => line.startsWith(`${name}{`) && line.includes(label));
  }

  /**
   * Writes another configuration for a running launcher, which reloads it. The text of `config` is written unchanged,
   * even if it is invalid.
   */
  async reconfigure(launcher: Program, setup: LauncherSetup | { readonly config: string }): Promise<void> {
    const config = 'config' in setup ? setup.config : this.configOf(launcher.name, setup);
    await writeDaemonConfig({ name: launcher.name, folder: this.folder, config });
  }

  /** Kills the ZooKeeper server and restarts it with its data after `downMs`. */
  async restartZooKeeper(downMs = 0): Promise<void> {
    if (!('restart' in this.server)) throw new Error('the ZooKeeper of this site is shared with other tests');
    await this.server.kill();
    await sleep(systemClock, downMs);
    await this.server.restart();
  }

  /** Starts an example cloud in a separate process and resolves with its URL. */
  async cloud(settings: readonly string[] = []): Promise<string> {
    const [port = 0] = await freePorts(1);
    const name = this.nextName('cloud');
    const cloud = await Program.start({
      name,
      command: process.execPath,
      args: [
        programPath('nodepool-example-cloud'),
        '--port',
        String(port),
        ...settings.flatMap((setting) => ['--set', setting]),
      ],
      logFile: join(this.folder, `${name}.log`),
    });
    this.programs.push(cloud);
    return `http://127.0.0.1:${port}`;
  }

  /** Sets the kind of requestor for future calls. */
  askWith(kind: RequestorKind): void {
    this.requestorKind = kind;
  }

  /** Starts a requestor. */
  async requestor(...args: readonly string[]): Promise<RunningRequestor> {
    const logFile = join(this.folder, `${this.nextName('requestor')}.log`);
    const requestor = await startRequestor(this.address, logFile, args, {
      ...(this.requestorKind === undefined ? {} : { kind: this.requestorKind }),
    });
    this.programs.push(requestor.program);
    return requestor;
  }

  /** Runs a requestor until it ends. */
  async ask(...args: readonly string[]): Promise<RequestorResult> {
    return await (
      await this.requestor(...args)
    ).result;
  }

  /** Resolves once no node record is left. */
  async clean(launcher: Program): Promise<void> {
    await launcher.while('deletes all nodes', CLEAN_DEADLINE_MS, (signal) => noNodesLeft(this.zooKeeper, signal));
  }

  /** Resolves once at least `count` node records exist. */
  async nodesExist(launcher: Program, count: number): Promise<void> {
    await launcher.while('launches nodes', CLEAN_DEADLINE_MS, (signal) =>
      conditionMet(this.zooKeeper, '/nodepool/nodes', signal, async () => {
        const { children } = await this.zooKeeper.children('/nodepool/nodes');
        return children.length >= count;
      }),
    );
  }

  /** Polls until an example cloud has no instances. */
  async noInstances(launcher: Program, endpoint: string): Promise<void> {
    await launcher.while('deletes all instances', CLEAN_DEADLINE_MS, async (signal) => {
      while ((await this.instances(endpoint)).length > 0) await sleep(systemClock, LIST_EVERY_MS, signal);
    });
  }

  /** Returns the names of the existing instances of an example cloud. */
  async instances(endpoint: string): Promise<string[]> {
    const answer = await fetch(`${endpoint}/v1/instances`, { signal: AbortSignal.timeout(START_DEADLINE_MS) });
    const page = (await answer.json()) as {
      readonly items: readonly { readonly name: string; readonly state: string }[];
    };
    return page.items.filter(({ state }) => state !== 'deleted').map(({ name }) => name);
  }

  /** Resolves once no request and no contender for the lock of a request or a node is left. */
  async nothingLeft(launcher: Program): Promise<void> {
    let left: readonly string[] = [];
    try {
      await launcher.while('ends all requests and releases all locks', CLEAN_DEADLINE_MS, (signal) =>
        conditionMet(this.zooKeeper, '/nodepool', signal, async () => {
          left = await this.leftovers();
          return left.length === 0;
        }),
      );
    } catch (cause) {
      throw new Error(`left: ${left.join(', ')}`, { cause });
    }
  }

  private async leftovers(): Promise<string[]> {
    const below = async (path: string): Promise<string[]> =>
      (await this.zooKeeper.children(path)).children.map((name) => `${path}/${name}`);
    const locks = [
      ...(await below('/nodepool/requests-lock')),
      ...(await below('/nodepool/nodes')).map((node) => `${node}/lock`),
    ];
    const contenders = await Promise.all(locks.map((lock) => ignoringMissing(() => below(lock))));
    return [...(await below('/nodepool/requests')), ...contenders.flat()];
  }

  private configOf(name: string, setup: LauncherSetup): object {
    const config = exampleConfig({
      zooKeeper: this.address,
      sessionTimeout: SESSION_TIMEOUT_S,
      webappPort: this.webappPorts.get(name) ?? 0,
      ...setup,
      labels: [...LABELS, ...(setup.labels ?? [])],
    });
    return setup.sections === undefined ? config : { ...config, providers: setup.sections };
  }

  private nextName(kind: string): string {
    this.started += 1;
    return `${kind}-${this.started}`;
  }
}

function startServer({ tls = false, maxSessionTimeout }: SiteOptions): Promise<RunningZooKeeper | ZooKeeperForTests> {
  // Short ticks, so that sessions of killed processes expire soon.
  const tickTime = 500;
  if (tls) return startZooKeeper({ tls, tickTime });
  if (maxSessionTimeout !== undefined) return startZooKeeper({ tickTime, settings: { maxSessionTimeout } });
  return zooKeeperForTests({ tickTime, settings: { maxSessionTimeout: LONG_SESSION_MS } });
}

async function ignoringMissing(read: () => Promise<string[]>): Promise<string[]> {
  try {
    return await read();
  } catch (error) {
    if (isZooKeeperError(error, 'no-node')) return [];
    throw error;
  }
}

/** Returns the name of the current test as a folder name. */
function nameOfThisTest(): string {
  const { currentTestName, testPath = '' } = expect.getState();
  return (currentTestName ?? testPath.slice(testPath.lastIndexOf('/') + 1)).replaceAll(/[^A-Za-z0-9]+/g, '-');
}
