/** Environment of a measurement: a ZooKeeper, a launcher in a separate process, and a requestor in this process. */

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts, startZooKeeper, type RunningZooKeeper } from '@nodepool/dev-zookeeper';
import {
  exampleConfig,
  labelsOffered,
  noNodesLeft,
  startLauncher,
  Program,
  type ExampleConfigOptions,
} from '@nodepool/harness';
import { openRequestor, type Requestor, type SubmittedRequest } from '@nodepool/requestor';
import { connect, type ZooKeeper } from '@nodepool/zookeeper';
import { systemClock } from '@nodepool/core';
import { peakResidentBytes } from './process-facts.js';

export const LABEL = 'bench';
const DEADLINE_MS = 120_000;
const EVENT_LOOP_FILE = 'event-loop.json';
const DECISIONS_FILE = 'decisions.json';

export interface EnvironmentOptions {
  /** ZooKeeper's data folder. */
  readonly dataFolder: string;
  /**
   * Enables the optimizing compiler of ZooKeeper's Java. It needs most of a processor for some seconds, so its work
   * must be over before the measurement, as on a server that has run for days. Default false.
   */
  readonly optimizedZooKeeper?: boolean;
  /** Default: one provider without limits that offers `LABEL`. */
  readonly site?: Pick<ExampleConfigOptions, 'labels' | 'providers' | 'minReady'>;
  /** Sections of providers of any driver, instead of those of `site`. */
  readonly sections?: readonly object[];
  /** Called before the launcher starts. */
  readonly prepare?: (zooKeeper: ZooKeeper, requestor: Requestor) => Promise<void>;
  /**
   * Script that the launcher loads before its own, or `none`. Default: one that measures the delay of its event loop,
   * which prevents even an idle launcher from sleeping.
   */
  readonly probe?: Probe | 'none';
  /** Starts the floor (`floor/program.ts`) instead of a launcher. Default false. */
  readonly floor?: boolean;
  /** Time limit of a measurement (ms). Default two minutes. */
  readonly deadlineMs?: number;
}

/** A script to be loaded with `--require`, and its environment variables. */
export interface Probe {
  readonly script: string;
  readonly env: Readonly<Record<string, string>>;
}

export interface EventLoopDelay {
  readonly p99: number;
  readonly max: number;
  /** The same without the time in which the main thread waited for a processor that others used. */
  readonly ownP99: number;
  readonly ownMax: number;
  /** Processor time of the main thread in its longest turn, which excludes delays from other programs. */
  readonly busiest: number;
}

/** Measurements of a launcher that has ended. */
export interface LauncherFacts {
  readonly peakResidentBytes: number;
  /** Event loop delays of each phase (ms): the start, and those that `beginPhase` separates; empty if not measured. */
  readonly eventLoopDelays: readonly EventLoopDelay[];
  /** Times from the creation of each request until an instance could be created (ms); only the floor measures them. */
  readonly decisions: readonly number[];
}

/**
 * All processes belong to one session, like those of one shell. Linux gives sessions equal shares of the processors,
 * for which a thread waits up to 100 ms.
 */
export class BenchmarkEnvironment {
  private constructor(
    private readonly server: RunningZooKeeper,
    private readonly folder: string,
    readonly zooKeeper: ZooKeeper,
    readonly launcher: Program,
    readonly requestor: Requestor,
    /** `Clock.monotonic` time of the launcher's start (ms). */
    readonly startedAt: number,
    /** Port of the launcher's web endpoint. */
    readonly webappPort: number,
    private readonly nodesBefore: number,
    private readonly deadlineMs: number,
    /** True if the floor runs instead of a launcher. */
    readonly isFloor: boolean,
  ) {}

  /** Starts all parts and resolves when the launcher offers `LABEL` from a cloud without delays. */
  static async make(options: EnvironmentOptions): Promise<BenchmarkEnvironment> {
    const folder = mkdtempSync(join(tmpdir(), 'nodepool-bench-'));
    const server = await startZooKeeper({
      parentFolder: options.dataFolder,
      javaHeap: '1g',
      ownSession: false,
      optimized: options.optimizedZooKeeper ?? false,
    });
    const zooKeeper = connect({ servers: server.servers });
    const requestor = openRequestor(zooKeeper, { name: 'bench' });
    await options.prepare?.(zooKeeper, requestor);
    const nodesBefore =
      options.prepare === undefined ? 0 : (await zooKeeper.children('/nodepool/nodes')).children.length;
    const [webappPort = 0] = await freePorts(1);
    const probe = options.probe ?? {
      script: join(__dirname, 'event-loop-probe.js'),
      env: { NODEPOOL_EVENT_LOOP_FILE: join(folder, EVENT_LOOP_FILE) },
    };
    const startedAt = systemClock.monotonic();
    const launcher = await (options.floor === true
      ? startFloor(folder, server.servers)
      : startLauncher({
          folder,
          ownSession: false,
          config: {
            ...exampleConfig({
              zooKeeper: { servers: server.servers },
              webappPort,
              ...(options.site ?? { labels: [LABEL] }),
            }),
            ...(options.sections === undefined ? {} : { providers: options.sections }),
          },
          ...(probe === 'none' ? {} : { nodeArgs: ['--require', probe.script], env: probe.env }),
        }));
    const environment = new BenchmarkEnvironment(
      server,
      folder,
      zooKeeper,
      launcher,
      requestor,
      startedAt,
      webappPort,
      nodesBefore,
      options.deadlineMs ?? DEADLINE_MS,
      options.floor ?? false,
    );
    try {
      await environment.measure('registers its pools', async (signal) => {
        await labelsOffered(zooKeeper, [LABEL], signal);
      });
      environment.beginPhase();
    } catch (error) {
      await environment.clear();
      throw error;
    }
    return environment;
  }

  /** Addresses of ZooKeeper. */
  get servers(): RunningZooKeeper['servers'] {
    return this.server.servers;
  }

  /** Runs `work`. Rejects if the launcher ends or the time limit is exceeded. */
  async measure<T>(what: string, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return await this.launcher.while(what, this.deadlineMs, work);
  }

  /** Resolves when only the node records from before the launcher's start are left. */
  async clean(signal: AbortSignal): Promise<void> {
    await noNodesLeft(this.zooKeeper, signal, this.nodesBefore);
  }

  /** Returns the number of the server's last transaction. */
  async lastTransaction(): Promise<number> {
    const answer = await this.server.fourLetterWord('srvr');
    const zxid = /^Zxid: 0x([0-9a-f]+)$/m.exec(answer)?.[1];
    if (zxid === undefined) throw new Error(`ZooKeeper's answer to srvr has no zxid: ${answer}`);
    // The upper half is the epoch, which is constant while the server runs.
    return Number(BigInt(`0x${zxid}`) & 0xffffffffn);
  }

  /** Submits a request for one node, which outlives the session like those of Zuul. */
  async submit(label = LABEL): Promise<SubmittedRequest> {
    return await this.requestor.request({ labels: [label], durable: true });
  }

  /** Ends a phase of the launcher's measured event loop delays and begins the next one. */
  beginPhase(): void {
    this.launcher.signal('SIGWINCH');
  }

  /** Stops all parts and resolves with the launcher's measurements. */
  async clear(): Promise<LauncherFacts> {
    await this.requestor.close();
    const peak = this.launcher.exit === undefined ? peakResidentBytes(this.launcher.pid) : 0;
    await this.launcher.stop();
    await this.zooKeeper.close();
    await this.server.stop();
    const eventLoopDelays = readDelays(join(this.folder, EVENT_LOOP_FILE));
    const decisions = readDecisions(join(this.folder, DECISIONS_FILE));
    rmSync(this.folder, { recursive: true, force: true });
    return { peakResidentBytes: peak, eventLoopDelays, decisions };
  }
}

function startFloor(folder: string, servers: string): Promise<Program> {
  return Program.start({
    name: 'floor',
    command: process.execPath,
    args: [join(__dirname, 'floor', 'program.js'), servers, LABEL, join(folder, DECISIONS_FILE)],
    logFile: join(folder, 'floor.log'),
    cwd: folder,
    ownSession: false,
  });
}

function readDecisions(file: string): readonly number[] {
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as number[]) : [];
}

function readDelays(file: string): EventLoopDelay[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as EventLoopDelay);
}
