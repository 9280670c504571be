/** Faults of the connection to ZooKeeper. */

import type { World } from './world.js';

export type Fault = (world: World) => void;

/** Faults that a program must survive, by name. */
export const FAULTS: Readonly<Record<string, Fault>> = {
  // A server does not end the session of a client that it cannot reach before its time.
  'the session expires': ({ server, zooKeeper, partitioned }) => {
    if (!partitioned) server.expireSession(zooKeeper);
  },
  'the connection breaks': ({ server, zooKeeper }) => server.disconnect(zooKeeper),
  'the answer of the next write is lost': ({ server, zooKeeper }) => server.loseNextWrite(zooKeeper, 'after-applied'),
  'the next write is lost': ({ server, zooKeeper }) => server.loseNextWrite(zooKeeper, 'before-applied'),
  'the server is away for longer than the session': (world) => {
    const { server, zooKeeper, clock } = world;
    world.partitioned = true;
    server.partition(zooKeeper, 'silent');
    clock.schedule(30_000, () => {
      world.partitioned = false;
      server.heal(zooKeeper);
    });
  },
};

/** Calls `fault` after so many transactions of the server. */
export function afterCommits(world: World, count: number, fault: Fault, delayMs = 0): () => boolean {
  let commits = 0;
  const stop = world.server.onCommit(() => {
    if (commits++ !== count) return;
    stop();
    // In the middle of a transaction of the server nothing can happen to it.
    world.clock.schedule(delayMs, () => fault(world));
  });
  return () => commits > count;
}
