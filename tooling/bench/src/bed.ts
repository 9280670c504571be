/** What a measurement runs on: a ZooKeeper, a launcher in a process of its own, and a requestor in this process. */

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts, startZooKeeper, type RunningZooKeeper } from '@nodepool/dev-zookeeper';
import {
  exampleConfig,
  labelsOffered,
  noNodesLeft,
  startLauncher,
  type ExampleConfigOptions,
  type Program,
} from '@nodepool/harness';
import { openRequestor, type Requestor, type SubmittedRequest } from '@nodepool/requestor';
import { connect, type ZooKeeper } from '@nodepool/zookeeper';
import { systemClock } from '@nodepool/core';
import { peakResidentBytes } from './process-facts.js';

export const LABEL = 'bench';
const DEADLINE_MS = 120_000;
const EVENT_LOOP_FILE = 'event-loop.json';

export interface BedOptions {
  /** Folder of ZooKeeper's data. */
  readonly dataFolder: string;
  /** Default: one provider without limits, that offers `LABEL`. */
  readonly site?: Pick<ExampleConfigOptions, 'labels' | 'providers'>;
  /** Called before the launcher starts. */
  readonly prepare?: (zooKeeper: ZooKeeper, requestor: Requestor) => Promise<void>;
  /** Whether the launcher measures the delay of its event loop, which keeps even an idle one from sleeping. Default true. */
  readonly eventLoopProbe?: boolean;
  /** Milliseconds that a measurement may take. Default two minutes. */
  readonly deadlineMs?: number;
}

export interface EventLoopDelay {
  readonly p99: number;
  readonly max: number;
  /** Processor time of the main thread in its longest turn: the delay without that of other programs. */
  readonly busiest: number;
}

/** What is known of a launcher after its end. */
export interface LauncherFacts {
  readonly peakResidentBytes: number;
  /** Milliseconds, of each phase; empty when it was not measured. */
  readonly eventLoopDelays: readonly EventLoopDelay[];
}

export class Bed {
  private constructor(
    private readonly server: RunningZooKeeper,
    private readonly folder: string,
    readonly zooKeeper: ZooKeeper,
    readonly launcher: Program,
    readonly requestor: Requestor,
    /** `Clock.monotonic` milliseconds at which the launcher's process was started. */
    readonly startedAt: number,
    private readonly nodesBefore: number,
    private readonly deadlineMs: number,
  ) {}

  /** Starts all three; resolves once the launcher offers the label `LABEL`, from a cloud that answers at once. */
  static async make(options: BedOptions): Promise<Bed> {
    const folder = mkdtempSync(join(tmpdir(), 'nodepool-bench-'));
    const server = await startZooKeeper({ parentFolder: options.dataFolder, javaHeap: '1g' });
    const zooKeeper = connect({ servers: server.servers });
    const requestor = openRequestor(zooKeeper, { name: 'bench' });
    await options.prepare?.(zooKeeper, requestor);
    const nodesBefore =
      options.prepare === undefined ? 0 : (await zooKeeper.children('/nodepool/nodes')).children.length;
    const [webappPort = 0] = await freePorts(1);
    const startedAt = systemClock.monotonic();
    const launcher = await startLauncher({
      folder,
      config: exampleConfig({
        zooKeeper: { servers: server.servers },
        webappPort,
        ...(options.site ?? { labels: [LABEL] }),
      }),
      nodeArgs: options.eventLoopProbe === false ? [] : ['--require', join(__dirname, 'event-loop-probe.js')],
      env: { NODEPOOL_EVENT_LOOP_FILE: join(folder, EVENT_LOOP_FILE) },
    });
    const bed = new Bed(
      server,
      folder,
      zooKeeper,
      launcher,
      requestor,
      startedAt,
      nodesBefore,
      options.deadlineMs ?? DEADLINE_MS,
    );
    try {
      await bed.measure('registers its pools', async (signal) => {
        await labelsOffered(zooKeeper, [LABEL], signal);
      });
    } catch (error) {
      await bed.clear();
      throw error;
    }
    return bed;
  }

  /** Rejects when the launcher ends, or `work` takes for ever. */
  async measure<T>(what: string, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return await this.launcher.while(what, this.deadlineMs, work);
  }

  /** Resolves once no record of a node is left but those that were there before the launcher. */
  async clean(signal: AbortSignal): Promise<void> {
    await noNodesLeft(this.zooKeeper, signal, this.nodesBefore);
  }

  /** Number of the server's last transaction. */
  async lastTransaction(): Promise<number> {
    const answer = await this.server.fourLetterWord('srvr');
    const zxid = /^Zxid: 0x([0-9a-f]+)$/m.exec(answer)?.[1];
    if (zxid === undefined) throw new Error(`ZooKeeper's answer to srvr has no zxid: ${answer}`);
    // The upper half is the epoch, which stays the same while the server runs.
    return Number(BigInt(`0x${zxid}`) & 0xffffffffn);
  }

  /** Submits a request for one node, which outlives the session as those of Zuul do. */
  async submit(label = LABEL): Promise<SubmittedRequest> {
    return await this.requestor.request({ labels: [label], durable: true });
  }

  /** The delays of the launcher's event loop are counted anew from here on. */
  beginPhase(): void {
    this.launcher.signal('SIGWINCH');
  }

  /** Ends everything; resolves with what is known of the launcher then. */
  async clear(): Promise<LauncherFacts> {
    await this.requestor.close();
    const peak = this.launcher.exit === undefined ? peakResidentBytes(this.launcher.pid) : 0;
    await this.launcher.stop();
    await this.zooKeeper.close();
    await this.server.stop();
    const eventLoopDelays = readDelays(join(this.folder, EVENT_LOOP_FILE));
    rmSync(this.folder, { recursive: true, force: true });
    return { peakResidentBytes: peak, eventLoopDelays };
  }
}

function readDelays(file: string): EventLoopDelay[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as EventLoopDelay);
}
