/** The ZooKeeper client of a simulated process that may die right before or after any of its writes. */

import type { TransactionOp, ZooKeeper } from '@nodepool/zookeeper';
import { overlay } from '@nodepool/simulated-process';
import { never } from './cloud-view.js';

export interface Mortal {
  readonly isDead: () => boolean;
  /** Called before and after each write; the process may die in it. */
  readonly atStep: () => void;
  /** Returns the operations to send instead. */
  readonly writing: (ops: readonly TransactionOp[]) => readonly TransactionOp[];
}

/** Returns a client whose writes never end once the process is dead. */
export function mortalClient(zooKeeper: ZooKeeper, { isDead, atStep, writing }: Mortal): ZooKeeper {
  const write = async <T>(
    ops: readonly TransactionOp[],
    send: (ops: readonly TransactionOp[]) => Promise<T>,
  ): Promise<T> => {
    atStep();
    if (isDead()) return never();
    const answer = await send(writing(ops));
    atStep();
    return isDead() ? never() : answer;
  };
  return overlay(zooKeeper, {
    transaction: (ops, options) => write(ops, (written) => zooKeeper.transaction(written, options)),
    set: (path, data, options = {}) => {
      const { version } = options;
      const op: TransactionOp = { type: 'set', path, data, ...(version === undefined ? {} : { version }) };
      return write([op], () => zooKeeper.set(path, data, options));
    },
    delete: (path, options = {}) => {
      const { version } = options;
      const op: TransactionOp = { type: 'delete', path, ...(version === undefined ? {} : { version }) };
      return write([op], () => zooKeeper.delete(path, options));
    },
  });
}
