/** Checks that registered launchers hold the locks of requests: only launchers lock them. */

import { requestLockPath, type Store } from '@nodepool/store';
import { isZooKeeperError, sortedContenders } from '@nodepool/zookeeper';
import { Findings, firstNames, type Finding } from './finding.js';

/** A launcher may lock requests shortly before its registration is visible. */
const GRACE_S = 60;
const MAX_EXAMINED = 100;

interface Holder {
  readonly path: string;
  /** Session of the contender; 0n if the znode belongs to none. */
  readonly session: bigint;
  /** The data of the contender: by convention host and process. */
  readonly name: string;
}

/** `now` is in milliseconds since the epoch. */
export async function checkLocks(store: Store, now: number): Promise<readonly Finding[]> {
  const findings = new Findings('records');
  const examined = [...store.requests.all()]
    .filter(({ locked, request }) => locked && now / 1000 - request.state_time > GRACE_S)
    .slice(0, MAX_EXAMINED);
  if (examined.length === 0) return findings.list;
  const launchers = await launcherSessions(store);
  const foreign = new Map<string, string[]>();
  for (const { id } of examined) {
    const holder = await holderOf(store, id);
    if (holder === undefined || launchers.has(holder.session)) continue;
    if (holder.session === 0n) {
      const reason = 'is locked by a znode of no session, which never disappears';
      findings.warning(`request ${id}`, reason, `delete ${holder.path} in ZooKeeper`);
    } else foreign.set(holder.name, [...(foreign.get(holder.name) ?? []), id]);
  }
  for (const [name, ids] of foreign) {
    const reason = `locked by ${name}, which is no registered launcher`;
    findings.warning(`requests ${firstNames(ids)}`, reason, 'look for this program and restart it, or end it');
  }
  return findings.list;
}

/** Returns the sessions of the registered launchers. */
async function launcherSessions({ components, zooKeeper }: Store): Promise<ReadonlySet<bigint>> {
  const stats = await Promise.all([...components.all('launcher')].map(({ path }) => zooKeeper.exists(path)));
  return new Set(stats.flatMap((stat) => (stat === undefined ? [] : [stat.ephemeralOwner])));
}

/** Returns undefined if the request is not locked any more. */
async function holderOf({ zooKeeper }: Store, id: string): Promise<Holder | undefined> {
  const directory = requestLockPath(id);
  try {
    const { children } = await zooKeeper.children(directory);
    const [first] = sortedContenders(children);
    if (first === undefined) return undefined;
    const path = `${directory}/${first.name}`;
    const { data, stat } = await zooKeeper.get(path);
    return { path, session: stat.ephemeralOwner, name: Buffer.from(data).toString() || 'an unnamed program' };
  } catch (error) {
    if (isZooKeeperError(error, 'no-node')) return undefined;
    throw error;
  }
}
