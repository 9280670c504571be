/** ZooKeeper as others than launchers use it: what they write, the checker knows to be theirs. */

import type { TransactionOp, ZooKeeper } from '@nodepool/zookeeper';
import type { Clock } from '@nodepool/core';
import type { SimulatedZooKeeperServer } from '@nodepool/zookeeper/simulated';
import type { Checker } from './checker.js';
import { overlay } from '@nodepool/simulated-process';

/** As launchers have it, so that everybody's locks are free as soon. */
const SESSION_TIMEOUT_MS = 9000;

/** A new connection, with a session of its own. */
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
    delete: (path, options) => {
      announce({ type: 'delete', path });
      return zooKeeper.delete(path, options);
    },
  });
}
