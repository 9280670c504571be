/** What a measurement runs on: a ZooKeeper, a launcher in a process of its own, and a requestor in this process. */

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts, startZooKeeper, type RunningZooKeeper } from '@nodepool/dev-zookeeper';
import { exampleConfig, labelsOffered, noNodesLeft, Requestor, startLauncher, type Program } from '@nodepool/harness';
import { connect, lockRecipe, type ZooKeeper } from '@nodepool/zookeeper';
import { peakResidentBytes } from './process-facts.js';

export const LABEL = 'bench';
const DEADLINE_MS = 120_000;

export interface BedOptions {
  /** Folder of ZooKeeper's data. */
  readonly dataFolder: string;
  /** Default: no limit. */
  readonly maxServers?: number;
  /** Whether the launcher measures the delay of its event loop, which keeps even an idle one from sleeping. Default true. */
  readonly eventLoopProbe?: boolean;
}

/** What is known of a launcher after its end. */
export interface LauncherFacts {
  readonly peakResidentBytes: number;
  /** Milliseconds; undefined when it was not measured. */
  readonly eventLoopDelay: { readonly p99: number; readonly max: number } | undefined;
}

export class Bed {
  private constructor(
    private readonly server: RunningZooKeeper,
    private readonly folder: string,
    readonly zooKeeper: ZooKeeper,
    readonly launcher: Program,
    readonly requestor: Requestor,
  ) {}

  /** Starts all three; resolves once the launcher offers the label `LABEL`, from a cloud that answers at once. */
  static async make(options: BedOptions): Promise<Bed> {
    const folder = mkdtempSync(join(tmpdir(), 'nodepool-bench-'));
    const server = await startZooKeeper({ parentFolder: options.dataFolder, javaHeap: '1g' });
    const zooKeeper = connect({ servers: server.servers });
    const [webappPort = 0] = await freePorts(1);
    const launcher = await startLauncher({
      folder,
      config: exampleConfig({
        zooKeeper: { servers: server.servers },
        webappPort,
        labels: [LABEL],
        providers: [options.maxServers === undefined ? {} : { maxServers: options.maxServers }],
      }),
      nodeArgs: options.eventLoopProbe === false ? [] : ['--require', join(__dirname, 'event-loop-probe.js')],
      env: { NODEPOOL_EVENT_LOOP_FILE: join(folder, 'event-loop.json') },
    });
    const requestor = new Requestor(zooKeeper, lockRecipe(zooKeeper), 'bench');
    const bed = new Bed(server, folder, zooKeeper, launcher, requestor);
    try {
      await bed.measure('registers its pools', async (signal) => {
        await labelsOffered(zooKeeper, [LABEL], signal);
        await requestor.start();
      });
    } catch (error) {
      await bed.clear();
      throw error;
    }
    return bed;
  }

  /** Rejects when the launcher ends, or `work` takes for ever. */
  async measure<T>(what: string, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return await this.launcher.while(what, DEADLINE_MS, work);
  }

  /** Resolves once no record of a node is left. */
  async clean(signal: AbortSignal): Promise<void> {
    await noNodesLeft(this.zooKeeper, signal);
  }

  /** Number of the server's last transaction. */
  async lastTransaction(): Promise<number> {
    const answer = await this.server.fourLetterWord('srvr');
    const zxid = /^Zxid: 0x([0-9a-f]+)$/m.exec(answer)?.[1];
    if (zxid === undefined) throw new Error(`ZooKeeper's answer to srvr has no zxid: ${answer}`);
    // The upper half is the epoch, which stays the same while the server runs.
    return Number(BigInt(`0x${zxid}`) & 0xffffffffn);
  }

  /** Ends everything; resolves with what is known of the launcher then. */
  async clear(): Promise<LauncherFacts> {
    this.requestor.stop();
    const peak = this.launcher.exit === undefined ? peakResidentBytes(this.launcher.pid) : 0;
    await this.launcher.stop();
    await this.zooKeeper.close();
    await this.server.stop();
    const file = join(this.folder, 'event-loop.json');
    const eventLoopDelay = existsSync(file)
      ? (JSON.parse(readFileSync(file, 'utf8')) as LauncherFacts['eventLoopDelay'])
      : undefined;
    rmSync(this.folder, { recursive: true, force: true });
    return { peakResidentBytes: peak, eventLoopDelay };
  }
}
