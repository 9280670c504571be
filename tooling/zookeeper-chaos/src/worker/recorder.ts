/** Issues calls and records the client's reports on them. */

import { isZooKeeperError } from '@nodepool/zookeeper';
import type {
  Ephemeral,
  FencedWrite,
  NodeWrite,
  OneShot,
  Outcome,
  RegisterRead,
  RegisterWrite,
  WatchSegment,
} from '../history.js';

export interface Attempt<T> {
  readonly outcome: Outcome;
  readonly code?: string;
  /** When it was applied. */
  readonly value?: T;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

export class Recorder {
  readonly nodeWrites: NodeWrite[] = [];
  readonly registerWrites: RegisterWrite[] = [];
  readonly registerReads: RegisterRead[] = [];
  readonly segments: WatchSegment[] = [];
  readonly oneShots: Mutable<OneShot>[] = [];
  readonly fencedWrites: FencedWrite[] = [];
  readonly ephemerals: Ephemeral[] = [];
  readonly unexpected: string[] = [];
  sessionsLost = 0;
  calls = 0;
  private readonly pending = new Map<number, string>();

  /** Number of calls without an outcome. */
  get unsettled(): string[] {
    return [...this.pending.values()];
  }

  /** Never rejects. */
  async attempt<T>(what: string, call: () => Promise<T>): Promise<Attempt<T>> {
    const id = this.calls++;
    this.pending.set(id, what);
    try {
      return { outcome: 'applied', value: await call() };
    } catch (error) {
      if (isZooKeeperError(error)) return { outcome: error.outcome, code: error.code };
      this.unexpected.push(`${what}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
      return { outcome: 'unknown', code: 'unexpected' };
    } finally {
      this.pending.delete(id);
    }
  }
}
