/** The workload of one client: each function is one repeated step and records its result. */

import type { RandomSource } from '@nodepool/core';
import type { Locks, TransactionOp, ZooKeeper } from '@nodepool/zookeeper';
import {
  COUNTERS,
  EPHEMERALS,
  LOCK_COUNT,
  LOCKS,
  NODES,
  numbered,
  REGISTER_COUNT,
  REGISTERS,
  ROOT,
  TREE,
} from '../layout.js';
import { below } from '../random.js';
import type { Attempt, Recorder } from './recorder.js';

/** A version that no znode has, for a condition that never holds. */
const IMPOSSIBLE_VERSION = 999_999;
const TREE_NAMES = 40;
const KEPT_ONE_IN = 8;
const WRITES_PER_HOLD = 3;
const MAX_LOCK_WAIT_MS = 3000;

export class Workload {
  private next = 0;

  constructor(
    private readonly client: string,
    private readonly zk: ZooKeeper,
    private readonly locks: Locks,
    private readonly recorder: Recorder,
    private readonly random: RandomSource,
  ) {}

  /** Creates znodes: single, in transactions, sequential, or in failing transactions. Deletes some of them. */
  async nodes(): Promise<void> {
    const path = `${NODES}/${this.client}/n-${this.next++}`;
    switch (below(this.random, 5)) {
      case 0:
        await this.createTwo([`${path}-a`, `${path}-b`]);
        return;
      case 1:
        await this.createInFailingTransaction(path);
        return;
      case 2:
        await this.createSequential();
        return;
      default:
        await this.createAndDelete(path);
    }
  }

  private async createTwo(paths: readonly string[]): Promise<void> {
    const creates = paths.map((path): TransactionOp => ({ type: 'create', path }));
    const creation = await this.recorder.attempt(`create ${paths.join()}`, () => this.zk.transaction(creates));
    this.wroteNodes(creation, paths, []);
    if (creation.outcome !== 'applied' || this.keeps()) return;
    const deletes = paths.map((path): TransactionOp => ({ type: 'delete', path }));
    const deletion = await this.recorder.attempt(`delete ${paths.join()}`, () => this.zk.transaction(deletes));
    this.wroteNodes(deletion, [], paths);
  }

  private async createInFailingTransaction(path: string): Promise<void> {
    const attempt = await this.recorder.attempt(`create ${path} in a failing transaction`, () =>
      this.zk.transaction([
        { type: 'create', path },
        { type: 'check', path: ROOT, version: IMPOSSIBLE_VERSION },
      ]),
    );
    this.wroteNodes(attempt, [path], [], true);
  }

  private async createSequential(): Promise<void> {
    const path = `${NODES}/${this.client}/q-${this.next++}-`;
    const attempt = await this.recorder.attempt(`create ${path}`, () =>
      this.zk.create(path, undefined, { mode: 'persistent-sequential' }),
    );
    this.wroteNodes(attempt, [path], []);
    if (attempt.value !== undefined && !this.keeps()) await this.delete(attempt.value.path, path);
  }

  private async createAndDelete(path: string): Promise<void> {
    const creation = await this.recorder.attempt(`create ${path}`, () => this.zk.create(path, Buffer.from(path)));
    this.wroteNodes(creation, [path], []);
    if (creation.outcome === 'applied' && !this.keeps()) await this.delete(path, path);
  }

  private async delete(path: string, recordedAs: string): Promise<void> {
    const deletion = await this.recorder.attempt(`delete ${path}`, () => this.zk.delete(path));
    this.wroteNodes(deletion, [], [recordedAs]);
  }

  /** Returns false for most znodes. These are deleted, so that the servers' data stays small and they start quickly. */
  private keeps(): boolean {
    return below(this.random, KEPT_ONE_IN) === 0;
  }

  private wroteNodes(
    { outcome, code }: Attempt<unknown>,
    creates: readonly string[],
    deletes: readonly string[],
    mustFail = false,
  ): void {
    const write = { creates, deletes, mustFail, outcome };
    this.recorder.nodeWrites.push(code === undefined ? write : { ...write, code });
  }

  async read(): Promise<void> {
    const path = this.pick(numbered(REGISTERS, REGISTER_COUNT));
    const { value } = await this.recorder.attempt(`get ${path}`, () => this.zk.get(path));
    if (value === undefined) return;
    const { data, stat } = value;
    this.recorder.registerReads.push({ path, version: stat.version, value: Buffer.from(data).toString() });
  }

  async register(): Promise<void> {
    const path = this.pick(numbered(REGISTERS, REGISTER_COUNT));
    const { value: read } = await this.recorder.attempt(`get ${path}`, () => this.zk.get(path));
    if (read === undefined) return;
    const value = `${this.client}-${this.next++}`;
    const { version: onVersion } = read.stat;
    const {
      outcome,
      code,
      value: stat,
    } = await this.recorder.attempt(`set ${path}`, () => this.zk.set(path, Buffer.from(value), { version: onVersion }));
    this.recorder.registerWrites.push({
      ...{ path, value, onVersion, outcome },
      ...(code === undefined ? {} : { code }),
      ...(stat === undefined ? {} : { version: stat.version }),
    });
  }

  /** Changes the tree of the tree caches, which are compared at the end. */
  async tree(): Promise<void> {
    const parent = `${TREE}/${below(this.random, TREE_NAMES)}`;
    const path = below(this.random, 2) === 0 ? parent : `${parent}/${below(this.random, 3)}`;
    const data = Buffer.from(`${this.client}-${this.next++}`);
    const kind = below(this.random, 4);
    await this.recorder.attempt(`change ${path}`, async () => {
      if (kind === 0) await this.zk.delete(path);
      else if (kind === 1) await this.zk.set(path, data);
      else await this.zk.create(path, data);
    });
  }

  async ephemeral(): Promise<void> {
    const path = `${EPHEMERALS}/${this.client}-${this.next++}`;
    const { outcome, value } = await this.recorder.attempt(`create ${path}`, () =>
      this.zk.create(path, undefined, { mode: 'ephemeral' }),
    );
    const owner = value === undefined ? {} : { owner: value.stat.ephemeralOwner.toString() };
    this.recorder.ephemerals.push({ path, outcome, ...owner });
  }

  /** Acquires a lock, with or without waiting, writes under it, and releases it. */
  async lock(): Promise<void> {
    const index = below(this.random, LOCK_COUNT);
    const path = `${LOCKS}/${index}`;
    const timeoutMs = 1 + below(this.random, MAX_LOCK_WAIT_MS);
    const waits = below(this.random, 3) > 0;
    const { value: held } = await this.recorder.attempt(`lock ${path}`, async () =>
      waits ? await this.locks.acquire(path, { timeoutMs }) : (await this.locks.tryAcquire(path))?.lock,
    );
    if (held === undefined) return;
    for (let count = 0; count < WRITES_PER_HOLD && !held.lost.aborted; count++) {
      const counter = `${COUNTERS}/${index}`;
      // The client may have moved to a server that lags behind.
      const { value: read } = await this.recorder.attempt(`read ${counter}`, async () => {
        await this.zk.sync(counter);
        return await this.zk.exists(counter);
      });
      if (read === undefined) break;
      const { outcome, value: results } = await this.recorder.attempt(`write under ${path}`, () =>
        this.zk.transaction([held.fence, { type: 'set', path: counter, data: Buffer.from(held.contender) }]),
      );
      const set = results?.[1];
      const version = set?.type === 'set' ? { version: set.stat.version } : {};
      const { contender } = held;
      this.recorder.fencedWrites.push({ lock: path, contender, number: read.version + 1, outcome, ...version });
    }
    await this.recorder.attempt(`release ${path}`, () => held.release());
  }

  /** Sets a one-shot watch, and sets it again after each event. */
  async oneShot(path: string, isOver: () => boolean): Promise<void> {
    for (;;) {
      let record: { path: string; version: number; events: number } | undefined;
      let earlyEvents = 0;
      const events = (): void => {
        if (record === undefined) earlyEvents++;
        else record.events++;
        if (!isOver() && (record?.events ?? earlyEvents) === 1) void this.oneShot(path, isOver);
      };
      const { value, code } = await this.recorder.attempt(`get ${path} with a watch`, () =>
        this.zk.get(path, { watch: events }),
      );
      if (value !== undefined) {
        record = { path, version: value.stat.version, events: earlyEvents };
        this.recorder.oneShots.push(record);
        return;
      }
      if (isOver() || code === 'closed') return;
    }
  }

  private pick(paths: readonly string[]): string {
    return paths[below(this.random, paths.length)] ?? '';
  }
}
