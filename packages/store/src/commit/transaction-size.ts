import type { TransactionOp } from '@nodepool/zookeeper';
import { TransactionTooLargeError } from '../errors.js';

/** The server's default of `jute.maxbuffer`, bytes. */
const LIMIT_BYTES = 0xfffff;

/** Upper bound (bytes) of an operation without its path and data: header, lengths, access list, version, flags. */
const OVERHEAD_BYTES = 80;

/** Upper bound (bytes) of the operations that acquire a lock (`LockRecipe.tryAcquireAll`), less three paths. */
const LOCK_OVERHEAD_BYTES = 3 * OVERHEAD_BYTES + 150;

/** Throws `TransactionTooLargeError` if the server would refuse the transaction by closing the connection. */
export function checkTransactionSize(
  ops: readonly TransactionOp[],
  locks: readonly { readonly path: string }[] = [],
): void {
  let bytes = OVERHEAD_BYTES;
  for (let index = 0; index < ops.length; index += 1) {
    const op = ops[index];
    bytes += OVERHEAD_BYTES + (op?.path.length ?? 0);
    if (op?.type === 'create' || op?.type === 'set') bytes += op.data?.length ?? 0;
  }
  for (let index = 0; index < locks.length; index += 1) {
    bytes += LOCK_OVERHEAD_BYTES + 3 * (locks[index]?.path.length ?? 0);
  }
  if (bytes > LIMIT_BYTES) throw new TransactionTooLargeError(bytes, LIMIT_BYTES, ops.length + 3 * locks.length);
}
