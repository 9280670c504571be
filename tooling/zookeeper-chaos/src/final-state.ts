/** Reads the server's final state with a separate client. */

import { isZooKeeperError, type ZooKeeper } from '@nodepool/zookeeper';
import type { FinalState } from './history.js';
import {
  COUNTERS,
  EPHEMERALS,
  FOLDERS,
  LOCK_COUNT,
  LOCKS,
  NODES,
  numbered,
  REGISTER_COUNT,
  REGISTERS,
  stateOf,
  TREE,
  TREE_END,
  withoutSequence,
} from './layout.js';

/** Creates the parent znodes of the clients' writes. */
export async function prepare(zk: ZooKeeper, clients: readonly string[]): Promise<void> {
  for (const path of FOLDERS) await zk.create(path);
  const rest = [
    ...clients.map((client) => `${NODES}/${client}`),
    ...numbered(REGISTERS, REGISTER_COUNT),
    ...numbered(COUNTERS, LOCK_COUNT),
  ];
  await Promise.all(rest.map((path) => zk.create(path)));
}

/** Creates the final znode of the tree. */
export async function endTree(zk: ZooKeeper): Promise<void> {
  await zk.create(TREE_END);
}

export async function finalState(zk: ZooKeeper, clients: readonly string[]): Promise<FinalState> {
  await zk.sync('/');
  const folders = await Promise.all(clients.map((client) => paths(zk, `${NODES}/${client}`)));
  const registers = await Promise.all(
    numbered(REGISTERS, REGISTER_COUNT).map(async (path) => {
      const { data, stat } = await zk.get(path);
      return [path, { version: stat.version, value: Buffer.from(data).toString() }] as const;
    }),
  );
  const lines = await Promise.all(numbered(LOCKS, LOCK_COUNT).map((path) => paths(zk, path)));
  const ephemerals: Record<string, string> = {};
  for (const path of await paths(zk, EPHEMERALS)) {
    const stat = await zk.exists(path);
    if (stat !== undefined) ephemerals[path] = stat.ephemeralOwner.toString();
  }
  const tree: Record<string, string> = {};
  await readTree(zk, TREE, tree);
  return {
    nodes: folders.flat().map(withoutSequence),
    registers: Object.fromEntries(registers),
    contenders: await Promise.all(lines.flat().map((path) => withOwner(zk, path))),
    ephemerals,
    tree,
  };
}

/** Returns the paths of the children; none if the parent does not exist. */
async function paths(zk: ZooKeeper, folder: string): Promise<string[]> {
  try {
    const { children } = await zk.children(folder);
    return children.map((child) => `${folder}/${child}`);
  } catch (error) {
    if (isZooKeeperError(error, 'no-node')) return [];
    throw error;
  }
}

async function readTree(zk: ZooKeeper, path: string, into: Record<string, string>): Promise<void> {
  const { data, stat } = await zk.get(path);
  into[path] = stateOf(data, stat.mzxid);
  for (const child of await paths(zk, path)) await readTree(zk, child, into);
}

/** Returns a contender with its session, which shows if a client or a server left it behind. */
async function withOwner(zk: ZooKeeper, path: string): Promise<string> {
  const stat = await zk.exists(path);
  return `${path} of session ${stat?.ephemeralOwner ?? 'none, because it was deleted meanwhile'}`;
}
