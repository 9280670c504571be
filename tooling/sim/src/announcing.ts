/** A ZooKeeper client for programs other than launchers. It announces its writes to the checker. */

import type { TransactionOp, ZooKeeper } from '@nodepool/zookeeper';
import type { Clock } from '@nodepool/core';
import type { SimulatedZooKeeperServer } from '@nodepool/zookeeper/simulated';
import type { Checker } from './checker.js';
import { overlay } from '@nodepool/simulated-process';

/** Same session timeout as the launchers', so that all locks are released after the same time. */
const SESSION_TIMEOUT_MS = 9000;

/** Returns a new connection with its own session. */
export function announcing(world: {
  readonly server: SimulatedZooKeeperServer;
  readonly clock: Clock;
  readonly checker: Checker;
}): ZooKeeper {
  const { server, clock, checker } = world;
  const zooKeeper = server.connect({ clock, sessionTimeoutMs: SESSION_TIMEOUT_MS });
  const announce = (op: TransactionOp): void => checker.observed.announce([op]);
  return overlay(zooKeeper, {
    create: (path, data, options) => {
      announce({ type: 'create', path, ...(data === undefined ? {} : { data }) });
      return zooKeeper.create(path, data, options);
    },
    set: (path, data, options) => {
      announce({ type: 'set', path, data });
      return zooKeeper.set(path, data, options);
    },
    transaction: (ops, options) => {
      checker.observed.announce(ops);
      return zooKeeper.transaction(ops, options);
    },
    delete: (path, options) => {
      announce({ type: 'delete', path });
      return zooKeeper.delete(path, options);
    },
  });
}
