/** Reads and writes the record of a scale set in ZooKeeper: facts for people, and the session for the next bridge. */

import { isDeepStrictEqual } from 'node:util';
import { scaleSetRecordIn, scaleSetRecordPath, type ScaleSetRecord } from '@nodepool/store/github';
import { ensurePath, isZooKeeperError, type ZooKeeper } from '@nodepool/zookeeper';

export class RecordWriter {
  private readonly path: string;
  private last: Omit<ScaleSetRecord, 'written'> | undefined;
  /** Version of the last read or write: a bridge that does not lead any more fails. */
  private version = -1;
  private queue: Promise<void> = Promise.resolve();

  constructor(
    private readonly zooKeeper: ZooKeeper,
    installation: string,
    scaleSet: string,
  ) {
    this.path = scaleSetRecordPath(installation, scaleSet);
  }

  /** Resolves with the record of the bridge that served the scale set before; undefined if there is none. */
  async read(signal: AbortSignal): Promise<ScaleSetRecord | undefined> {
    await ensurePath(this.zooKeeper, this.path, { signal });
    await this.zooKeeper.sync(this.path, { signal });
    const { data, stat } = await this.zooKeeper.get(this.path, { signal });
    this.version = stat.version;
    return scaleSetRecordIn(data);
  }

  /** Writes the record if it has changed, after the writes before. */
  write(record: ScaleSetRecord, signal: AbortSignal): Promise<void> {
    const written = this.queue.then(() => this.writeNow(record, signal));
    // The caller of a failed write receives its failure; the next write follows.
    this.queue = written.catch(() => undefined);
    return written;
  }

  private async writeNow(record: ScaleSetRecord, signal: AbortSignal): Promise<void> {
    const { written: _written, ...facts } = record;
    if (isDeepStrictEqual(facts, this.last)) return;
    const data = new TextEncoder().encode(JSON.stringify(record));
    try {
      const { version } = await this.zooKeeper.set(this.path, data, { version: this.version, signal });
      this.version = version;
    } catch (error) {
      // The outcome of an earlier write is unknown, or ZooKeeper has lost its data.
      if (isZooKeeperError(error, 'bad-version') || isZooKeeperError(error, 'no-node')) await this.read(signal);
      throw error;
    }
    this.last = facts;
  }
}
