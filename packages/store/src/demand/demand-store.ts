/**
 * The demand for nodes of labels, `/nodepool/demand/<label>/<day>`: one znode per day since the epoch, so that a change
 * writes little. Only the launcher that is elected for a label writes it.
 */

import { ensurePath, isZooKeeperError, type CallOptions } from '@nodepool/zookeeper';
import type { JsonObject } from '@nodepool/core';
import { bytesOf, parseObject } from '../codec/codec.js';
import type { StoreContext } from '../context.js';
import { LostOwnershipError } from '../errors.js';
import { demandPath } from '../paths.js';
import { childrenOf } from '../znodes-below.js';

export interface DemandDay {
  /** Number of the day since the epoch. */
  readonly day: number;
  /** Version of the znode; undefined if it does not exist yet. */
  readonly version: number | undefined;
  readonly data: JsonObject;
}

const DAY_NAME = /^\d{1,7}$/;
/** Limit of the days that one call deletes. */
const MAX_REMOVED = 100;

export class DemandStore {
  constructor(private readonly context: Pick<StoreContext, 'zooKeeper' | 'log'>) {}

  /** Resolves with the days that can be read, oldest first; logs a warning about each of the others. */
  async read(label: string, options?: CallOptions): Promise<readonly DemandDay[]> {
    const { zooKeeper } = this.context;
    const days = (await childrenOf(zooKeeper, demandPath(label), options)).filter((name) => DAY_NAME.test(name));
    const read = await Promise.all(days.map((name) => this.readDay(label, name, options)));
    return read.flatMap((day) => day ?? []).sort((a, b) => a.day - b.day);
  }

  /** Writes a day. Resolves with its new version. Rejects with `LostOwnershipError` if another process wrote it. */
  async write(label: string, { day, version, data }: DemandDay, options?: CallOptions): Promise<number> {
    const { zooKeeper } = this.context;
    const path = `${demandPath(label)}/${day}`;
    const bytes = bytesOf(JSON.stringify(data));
    try {
      if (version !== undefined) return (await zooKeeper.set(path, bytes, { ...options, version })).version;
      await ensurePath(zooKeeper, demandPath(label), options);
      return (await zooKeeper.create(path, bytes, options)).stat.version;
    } catch (error) {
      const isOther = (['bad-version', 'node-exists', 'no-node'] as const).some((code) =>
        isZooKeeperError(error, code),
      );
      throw isOther ? new LostOwnershipError(path, error) : error;
    }
  }

  /** Deletes the days before `first`. Resolves with their numbers. */
  async removeBefore(label: string, first: number, options?: CallOptions): Promise<readonly number[]> {
    const { zooKeeper } = this.context;
    const names = await childrenOf(zooKeeper, demandPath(label), options);
    const old = names.filter((name) => DAY_NAME.test(name) && Number(name) < first).slice(0, MAX_REMOVED);
    for (const name of old) {
      try {
        await zooKeeper.delete(`${demandPath(label)}/${name}`, options);
      } catch (error) {
        if (!isZooKeeperError(error, 'no-node')) throw error;
      }
    }
    return old.map(Number);
  }

  private async readDay(label: string, name: string, options?: CallOptions): Promise<DemandDay | undefined> {
    const { zooKeeper, log } = this.context;
    const path = `${demandPath(label)}/${name}`;
    try {
      const { data, stat } = await zooKeeper.get(path, options);
      const parsed = parseObject(data);
      if (typeof parsed !== 'string') return { day: Number(name), version: stat.version, data: parsed };
      log.warn('A record of demand cannot be read and is replaced', { path, reason: parsed });
      return { day: Number(name), version: stat.version, data: {} };
    } catch (error) {
      if (!isZooKeeperError(error, 'no-node')) throw error;
      return undefined;
    }
  }
}
