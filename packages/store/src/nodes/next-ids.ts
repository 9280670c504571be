/**
 * Foretells the ids of the records that a transaction is about to create, so that it can also create their locks.
 * ZooKeeper numbers sequential znodes with the number of creations below their parent, so the next id follows the
 * highest one, unless a record was created and deleted unseen or another program creates records at the same time. The
 * transaction proves its ids with a guard and fails if they are wrong.
 */

import type { TransactionOp } from '@nodepool/zookeeper';
import { nodePath } from '../paths.js';

/** Number of creations that are not foretold after the first wrong id. It doubles with each further one. */
const FIRST_PAUSE = 8;
const LONGEST_PAUSE = 1024;

/** Ids of records to be created. The owner must call one of the functions once. */
export interface ForetoldIds {
  readonly ids: readonly string[];
  /**
   * Operations that must precede the creations. With the locks of the records, they fail unless the records get these
   * ids and all transactions in progress before this one have been applied.
   */
  readonly guard: readonly TransactionOp[];
  applied(): void;
  /** The transaction was not applied, or its outcome is unknown. `wrong`: because of the ids. */
  failed(wrong: boolean): void;
}

export class NextIds {
  /** The highest number seen; undefined if none was seen. */
  private highest: number | undefined;
  /** The number after those of the transactions in progress; undefined if they do not decide. */
  private reserved: number | undefined;
  private readonly inProgress = new Set<string>();
  /** The proof of the latest transaction in progress that decides `reserved`. */
  private latest: string | undefined;
  /** Creations of this process whose ids are not known yet. */
  private unknown = 0;
  private pause = 0;
  private lastPause = 0;
  /** Number of failures. A failure makes the ids of all transactions in progress wrong. */
  private failures = 0;

  /** A record with this id exists or has existed. */
  seen(id: string): void {
    const number = Number(id);
    if (Number.isSafeInteger(number) && (this.highest === undefined || this.highest < number)) this.highest = number;
  }

  /** Returns true if a transaction in progress creates the record. */
  isForetold(id: string): boolean {
    return this.inProgress.has(id);
  }

  /**
   * Returns the next ids; undefined if they are not known. `isKnown`: all records before this id are known. `proof`:
   * path of a znode that exists only if the transaction was applied, and at least until its answer is received.
   */
  foretell(count: number, isKnown: (id: string) => boolean, proof: string): ForetoldIds | undefined {
    if (this.unknown > 0 || this.highest === undefined || count === 0) return undefined;
    if (this.pause > 0) {
      this.pause -= 1;
      return undefined;
    }
    // The guard uses one number.
    const first = Math.max(this.highest + 1, this.reserved ?? 0) + 1;
    const ids = Array.from({ length: count }, (_, index) => String(first + index).padStart(10, '0'));
    const [firstId = ''] = ids;
    if (!isKnown(firstId)) return undefined;
    this.reserved = first + count;
    for (const id of ids) this.inProgress.add(id);
    const guard = guardOf(nodePath(firstId), this.latest);
    this.latest = proof;
    return { ids, guard, ...this.outcome(ids, proof) };
  }

  private outcome(ids: readonly string[], proof: string): Pick<ForetoldIds, 'applied' | 'failed'> {
    const { failures } = this;
    const end = (): void => {
      for (const id of ids) this.inProgress.delete(id);
      if (this.latest === proof) this.latest = undefined;
    };
    return {
      applied: () => {
        end();
        this.lastPause = 0;
      },
      failed: (wrong) => {
        end();
        if (failures !== this.failures) return;
        this.failures += 1;
        this.reserved = undefined;
        // The transactions in progress require the one that failed.
        this.latest = undefined;
        if (!wrong) return;
        this.lastPause = Math.min(LONGEST_PAUSE, Math.max(FIRST_PAUSE, this.lastPause * 2));
        this.pause = this.lastPause;
      },
    };
  }

  /** Creates records whose ids only the answer shows. */
  async unforetold<T>(create: () => Promise<T>): Promise<T> {
    this.unknown += 1;
    try {
      return await create();
    } finally {
      this.unknown -= 1;
    }
  }
}

/**
 * Returns operations that fail unless the next record gets the id of this path, if its lock is created there, too. No
 * record had the id before, so the lock can only belong to the new record. Another program may have created as many
 * records as a transaction in progress that failed, so `predecessor` must exist, too.
 */
function guardOf(path: string, predecessor: string | undefined): readonly TransactionOp[] {
  const guard: TransactionOp[] = [
    { type: 'create', path },
    { type: 'delete', path, version: 0 },
  ];
  return predecessor === undefined ? guard : [{ type: 'check', path: predecessor, version: 0 }, ...guard];
}
