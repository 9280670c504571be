/** Whether a transaction fits into what a server accepts. */

import type { TransactionOp } from '@nodepool/zookeeper';
import { TransactionTooLargeError } from './errors.js';

/** Default of the server's `jute.maxbuffer`. */
const LIMIT_BYTES = 0xfffff;

/** Upper bound of what an operation needs besides its path and data: header, lengths, access list, version, flags. */
const OVERHEAD_BYTES = 80;

/** Upper bound of the operations that take one lock (see `LockRecipe.tryAcquireAll`), besides three times its path. */
const LOCK_OVERHEAD_BYTES = 3 * OVERHEAD_BYTES + 150;

/** Throws `TransactionTooLargeError` when the server would refuse it, which it does by cutting the connection. */
export function checkTransactionSize(ops: readonly TransactionOp[], lockPaths: readonly string[] = []): void {
  let bytes = OVERHEAD_BYTES;
  for (const op of ops) {
    bytes += OVERHEAD_BYTES + op.path.length;
    if (op.type === 'create' || op.type === 'set') bytes += op.data?.length ?? 0;
  }
  for (const path of lockPaths) bytes += LOCK_OVERHEAD_BYTES + 3 * path.length;
  if (bytes > LIMIT_BYTES) throw new TransactionTooLargeError(bytes, LIMIT_BYTES, ops.length + 3 * lockPaths.length);
}
