/**
 * The bridge with a simulated GitHub, a simulated ZooKeeper, a scripted launcher, and nodes that are folders: `ssh` is
 * a script that runs the remote command on this host with a home folder of the node.
 */

import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import {
  silentLogger,
  silentMetrics,
  sleep,
  systemClock,
  systemRandom,
  type JsonObject,
  type LogFields,
  type Logger,
} from '@nodepool/core';
import { seededRandom, signalIfThere } from '@nodepool/core/testing';
import { startSimulatedGithub, type SimulatedGithub } from '@nodepool/simulated-github';
import { scaleSetRecordIn, scaleSetRecordPath, type ScaleSetRecord } from '@nodepool/store/github';
import { isZooKeeperError, type ZooKeeper } from '@nodepool/zookeeper';
import { SimulatedZooKeeperServer } from '@nodepool/zookeeper/simulated';
import { scopeOf } from '../../src/github/scope.js';
import type { ScaleSetSettings, Settings } from '../../src/settings/settings.js';
import { Bridge } from '../../src/index.js';
import { ActionsService } from '../../src/github/actions-service.js';
import { Connection } from '../../src/github/connection.js';
import { HttpClient } from '../../src/github/http.js';
import { decode, encode, LABEL, Launcher } from './launcher.js';

/** Time between two looks at a condition (ms). */
const LOOK_MS = 10;

export const SET: ScaleSetSettings = {
  ...{ name: 'linux', labels: ['linux'], nodeLabel: LABEL, runnerGroup: 'default', minRunners: 0, maxRunners: 20 },
  ...{ priority: 200, tenant: undefined, user: undefined, identity: undefined },
  ...{ runnerFolder: 'actions-runner', workFolder: '_work', environment: { RUNNER_ALLOW_RUNASROOT: '1' } },
  ...{ startTimeoutMs: 60_000, idleTimeoutMs: 60_000 },
};

export interface RunningBridge {
  readonly bridge: Bridge;
  readonly zooKeeper: ZooKeeper;
}

export class World {
  readonly lines: string[] = [];
  private readonly bridges = new Set<RunningBridge>();
  private readonly server = new SimulatedZooKeeperServer({ clock: systemClock, latencyMs: 0 });
  /** Another program with access to ZooKeeper. */
  readonly other = this.server.connect({ sessionTimeoutMs: 60_000 });
  readonly launcher = new Launcher(this.server.connect({ sessionTimeoutMs: 60_000 }), systemClock);

  private constructor(
    readonly github: SimulatedGithub,
    private readonly folder: string,
  ) {}

  static async start(settings: Parameters<typeof startSimulatedGithub>[0] = {}): Promise<World> {
    const github = await startSimulatedGithub({ clock: systemClock, random: seededRandom(1), ...settings });
    const world = new World(github, mkdtempSync(join(tmpdir(), 'nodepool-bridge-test-')));
    world.writeSsh();
    await world.launcher.start();
    return world;
  }

  settings(...sets: readonly Partial<ScaleSetSettings>[]): Settings {
    const { github } = this;
    const scope = scopeOf(`${github.url}/acme`);
    if (scope === undefined) throw new Error('the address is no organization');
    const credentials = {
      kind: 'app',
      ...{ clientId: github.clientId, installationId: github.installations['acme'] ?? 0 },
      keyFile: github.appKeyFile,
    } as const;
    const scaleSets = (sets.length === 0 ? [{}] : sets).map((set) => ({ ...SET, ...set }));
    return { installations: [{ name: 'acme', scope, credentials, scaleSets }] };
  }

  startBridge(settings = this.settings()): RunningBridge {
    const zooKeeper = this.server.connect({ sessionTimeoutMs: 9000 });
    const identifier = `bridge-${this.bridges.size + 1}`;
    const bridge = new Bridge({
      ...{ zooKeeper, settings, clock: systemClock, random: systemRandom, metrics: silentMetrics, version: '1.0.0' },
      ...{ identifier, log: this.logger({ bridge: identifier }), askLauncher: () => this.askLauncher() },
      compareMs: 300,
      env: { ...process.env, PATH: `${this.folder}${delimiter}${process.env['PATH'] ?? ''}`, NODES: this.nodes },
    });
    bridge.start();
    const running = { bridge, zooKeeper };
    this.bridges.add(running);
    return running;
  }

  /** The answer of the launcher's web endpoint. Default: it has none. */
  askLauncher: () => Promise<JsonObject> = () => Promise.reject(new Error('no web endpoint'));

  async stopBridge(running: RunningBridge): Promise<void> {
    this.bridges.delete(running);
    await running.bridge.stop();
    await running.zooKeeper.close();
  }

  /** Registers a launcher with a web endpoint, which `askLauncher` answers. */
  async registerLauncher(): Promise<void> {
    const webapp = { host: '127.0.0.1', port: 1 };
    const component = {
      hostname: 'launcher-1',
      kind: 'launcher',
      state: 'running',
      version: '1',
      model_api: 0,
      webapp,
    };
    const folder = '/nodepool/components/launcher';
    await this.other.create(folder).catch((error: unknown) => {
      if (!isZooKeeperError(error, 'node-exists')) throw error;
    });
    await this.other.create(`${folder}/launcher-1`, encode(component), { mode: 'ephemeral-sequential' });
  }

  /** Ends a bridge without any of its last calls, as `kill -9` does. */
  async kill({ zooKeeper }: RunningBridge): Promise<void> {
    const rule = this.github.faults.add({ on: 'sessions.delete', fault: { kind: 'status', status: 503 } });
    await zooKeeper.close();
    await this.until('the killed bridge ends', () => rule.hits > 0 || this.hasNoSession());
    rule.remove();
  }

  /** Ends the ZooKeeper session of a bridge, whose process continues. */
  expire({ zooKeeper }: RunningBridge): void {
    this.server.expireSession(zooKeeper);
  }

  /** Resolves once the condition is met. */
  async until(what: string, isMet: () => boolean): Promise<void> {
    const limit = systemClock.monotonic() + 60_000;
    while (!isMet()) {
      if (systemClock.monotonic() > limit) throw new Error(`${what}: not within a minute\n${this.describe()}`);
      await sleep(systemClock, LOOK_MS);
    }
  }

  /** Resolves once all jobs have ended and nothing is left of their runners. */
  async untilServed(): Promise<void> {
    const { github } = this;
    await this.until('all jobs end', () => github.inspect.jobs().every(({ state }) => state === 'completed'));
    await this.until('nothing is left', () => {
      const records = this.records('nodes').size + this.records('requests').size;
      return records === 0 && github.inspect.runners().length === 0;
    });
  }

  records(kind: 'nodes' | 'requests'): Map<string, JsonObject> {
    const prefix = `/nodepool/${kind}/`;
    const found = new Map<string, JsonObject>();
    for (const [path, { data }] of this.server.dump()) {
      const id = path.slice(prefix.length);
      if (path.startsWith(prefix) && !id.includes('/') && data.length > 0) found.set(id, decode(data));
    }
    return found;
  }

  record(set = 'linux'): ScaleSetRecord | undefined {
    const found = this.server.dump().get(scaleSetRecordPath('acme', set));
    return found === undefined ? undefined : scaleSetRecordIn(found.data);
  }

  private hasNoSession(): boolean {
    return this.github.inspect.scaleSets().every(({ session }) => session === undefined);
  }

  /** Home folder of a node. */
  home(id: string): string {
    return join(this.nodes, `node-${id}`);
  }

  /** Kills the runner on a node, and deletes its files. */
  killRunner(id: string): void {
    for (const pid of this.processes(id)) signalIfThere(-pid);
    rmSync(join(this.home(id), '.nodepool-runners'), { recursive: true });
  }

  /** Returns the number of runners that were started on a node. */
  startsOn(id: string): number {
    return this.sshCalls().split('\n').filter((line) => line.includes(`-- node-${id} `) && line.includes('mkdir -p')).length; // prettier-ignore
  }

  /** Ends all connections to nodes. */
  killSsh(): void {
    for (const pid of readFileSync(`${this.nodes}.pids`, 'utf8').trim().split('\n')) {
      if (this.owns(Number(pid))) signalIfThere(Number(pid));
    }
  }

  /** Notes in the record of a node that its instance is lost, as a launcher does. */
  async interrupt(id: string): Promise<void> {
    const path = `/nodepool/nodes/${id}`;
    const { data } = await this.other.get(path);
    const interruption = { kind: 'failed', reason: 'its instance has failed', time: 0, ends_at: null };
    await this.other.set(path, encode({ ...decode(data), interruption }));
  }

  /** Registers a runner in GitHub as another program does, and returns its name. */
  async register(set: string, name: string): Promise<string> {
    const service = serviceOf(this.settings());
    const { id = 0 } = this.github.inspect.scaleSets().find((each) => each.name === set) ?? {};
    await service.generateJitConfig(id, name, '_work', new AbortController().signal);
    return name;
  }

  /** Returns the names of the registered runners. */
  agents(): readonly string[] {
    return this.github.inspect.runners().map(({ name }) => name);
  }

  /** Returns the command lines of all calls of ssh. */
  sshCalls(): string {
    const file = `${this.nodes}.log`;
    return existsSync(file) ? readFileSync(file, 'utf8') : '';
  }

  /** Lets connections to a node fail, or succeed again. */
  setReachable(id: string, isReachable: boolean): void {
    mkdirSync(this.home(id), { recursive: true });
    const file = join(this.home(id), 'unreachable');
    if (isReachable) rmSync(file, { force: true });
    else writeFileSync(file, '');
  }

  async stop(): Promise<void> {
    await Promise.all([...this.bridges].map((running) => this.stopBridge(running)));
    await this.launcher.stop();
    await this.other.close();
    await this.github.close();
    for (const node of readdirSync(this.nodes)) {
      for (const pid of this.processes(node.slice('node-'.length))) signalIfThere(-pid);
    }
    rmSync(this.folder, { recursive: true, force: true });
  }

  describe(): string {
    return JSON.stringify(
      {
        jobs: this.github.inspect
          .jobs()
          .map(({ number, state, runner, result }) => ({ number, state, runner, result })),
        runners: this.github.inspect.runners(),
        nodes: [...this.records('nodes')],
        requests: [...this.records('requests')],
        log: this.lines.slice(-60),
      },
      undefined,
      1,
    );
  }

  /** Returns the process groups of the runners on a node. */
  private processes(id: string): readonly number[] {
    return pidsBelow(join(this.home(id), '.nodepool-runners')).filter((pid) => this.owns(pid));
  }

  /** Returns true if a process of these nodes has this id; that of an ended one can be in use again. */
  private owns(pid: number): boolean {
    try {
      return readFileSync(`/proc/${pid}/environ`, 'utf8').includes(this.nodes);
    } catch {
      // It has ended.
      return false;
    }
  }

  private get nodes(): string {
    return join(this.folder, 'nodes');
  }

  private writeSsh(): void {
    mkdirSync(this.nodes);
    const script = [
      '#!/bin/sh',
      'for command; do :; done',
      'printf "%s\\n" "$*" | tr "\\n" " " >>"$NODES.log"; echo >>"$NODES.log"; echo "$$" >>"$NODES.pids"',
      'while [ "$1" != -- ]; do shift; done',
      'HOME="$NODES/$2"; export HOME; mkdir -p "$HOME/actions-runner"; cd "$HOME" || exit 255',
      'if [ -e unreachable ]; then echo "connect to host $2: No route to host" >&2; exit 255; fi',
      `[ -e actions-runner/run.sh ] || cp '${this.github.runner}' actions-runner/run.sh`,
      'exec /bin/sh -c "$command"',
    ];
    const path = join(this.folder, 'ssh');
    writeFileSync(path, `${script.join('\n')}\n`);
    chmodSync(path, 0o755);
  }

  private logger(own: LogFields): Logger {
    const line =
      (level: string) =>
      (message: string, fields: LogFields = {}) =>
        void this.lines.push(`${level} ${message} ${JSON.stringify({ ...own, ...fields }, errorsAsText)}`);
    return {
      ...{ debug: () => undefined, info: line('info'), warn: line('warn') },
      error: (message, error, fields) => line('error')(message, { error, ...fields }),
      with: (fields) => this.logger({ ...own, ...fields }),
      named: () => this.logger(own),
    };
  }
}

/** Returns the calls of GitHub with the credentials of the settings. */
export function serviceOf({ installations: [installation] }: Settings): ActionsService {
  if (installation === undefined) throw new Error('there is no installation');
  const { scope, credentials } = installation;
  const userAgent = JSON.stringify({ system: 'test', version: '1', commit_sha: '', scale_set_id: 0, subsystem: '' });
  const http = new HttpClient(systemClock, () => undefined);
  return new ActionsService(
    new Connection({
      ...{ scope, credentials, http, userAgent, clock: systemClock, log: silentLogger },
      readFile: (file) => readFile(file, 'utf8'),
    }),
  );
}

function errorsAsText(_key: string, value: unknown): unknown {
  return value instanceof Error ? value.stack : value;
}

function pidsBelow(folder: string): readonly number[] {
  let names: readonly string[];
  try {
    names = readdirSync(folder);
  } catch {
    // The node has not started a runner.
    return [];
  }
  return names.flatMap((name) => {
    try {
      return [Number(readFileSync(join(folder, name, 'pid'), 'utf8'))];
    } catch {
      // It has ended meanwhile.
      return [];
    }
  });
}
