/** Random sequences of calls on a small tree, with their results as text, to compare two servers. */

import {
  isZooKeeperError,
  OPEN_ACL,
  type Acl,
  type CreateMode,
  type Stat,
  type TransactionOp,
  type WatchEvent,
  type ZooKeeper,
} from '../../src/index.js';
import { bytes } from './harness.js';

/** One step of the client with this number. */
export interface Step {
  readonly client: number;
  readonly name: string;
  run(zk: ZooKeeper, log: Log): Promise<unknown>;
}

const NAMES = ['/a', '/b', '/a/c', '/a/d', '/a/c/e', '/b/f'];
const PARENTS = ['/', '/a', '/b', '/a/c'];
const MODES: readonly CreateMode[] = [
  'persistent',
  'persistent',
  'persistent',
  'ephemeral',
  'persistent-sequential',
  'ephemeral-sequential',
  'container',
];
const LISTS: readonly (readonly Acl[])[] = [
  OPEN_ACL,
  OPEN_ACL,
  OPEN_ACL,
  [{ permissions: 17, scheme: 'world', id: 'anyone' }],
  [{ permissions: 30, scheme: 'ip', id: '127.0.0.0/8' }],
  [{ permissions: 31, scheme: 'unknown', id: '' }],
];

/** The answers and events of one client, in order. */
export class Log {
  readonly lines: unknown[] = [];

  readonly onEvent = (event: WatchEvent): void => {
    this.lines.push(`event: ${event.type} ${event.path}`);
  };

  async outcome(name: string, call: Promise<unknown>): Promise<void> {
    try {
      this.lines.push({ name, result: await call });
    } catch (error) {
      if (!isZooKeeperError(error)) throw error;
      const { code, operationIndex = -1 } = error;
      this.lines.push({ name, code, operationIndex });
    }
  }
}

/** Returns random steps, the same for the same random source. */
export function makePlan(random: () => number, length: number): Step[] {
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)]!;
  const version = (): number => pick([-1, -1, -1, 0, 1, 2]);
  const step = (): Omit<Step, 'client'> => {
    const path = pick(NAMES);
    switch (pick(KINDS)) {
      case 'create': {
        const mode = pick(MODES);
        const acl = pick(LISTS);
        const at = mode.includes('sequential') ? `${pick(PARENTS)}/s-`.replace('//', '/') : path;
        return { name: `create ${mode} ${at}`, run: (zk) => zk.create(at, bytes(path), { mode, acl }) };
      }
      case 'set': {
        const expected = version();
        const data = bytes('x'.repeat(Math.floor(random() * 5)));
        return { name: `set ${path} ${expected}`, run: (zk) => zk.set(path, data, { version: expected }) };
      }
      case 'delete': {
        const expected = version();
        return { name: `delete ${path} ${expected}`, run: (zk) => zk.delete(path, { version: expected }) };
      }
      case 'setAcl': {
        const acl = pick(LISTS);
        const expected = version();
        return { name: `setAcl ${path} ${expected}`, run: (zk) => zk.setAcl(path, acl, { version: expected }) };
      }
      case 'getAcl':
        return { name: `getAcl ${path}`, run: (zk) => zk.getAcl(path) };
      case 'read': {
        const watched = random() < 0.6;
        const kind = pick(['get', 'exists', 'children'] as const);
        const at = kind === 'children' ? pick(PARENTS) : path;
        return {
          name: `${kind} ${at}${watched ? ' watched' : ''}`,
          run: (zk, log) => sortedRead(zk[kind](at, watched ? { watch: log.onEvent } : {})),
        };
      }
      case 'watch': {
        const mode = pick(['persistent', 'persistent-recursive'] as const);
        const at = pick([...PARENTS, ...NAMES]);
        return { name: `watch ${at} ${mode}`, run: (zk, log) => follow(zk, at, mode, log) };
      }
      case 'transaction': {
        const ops = Array.from({ length: 1 + Math.floor(random() * 4) }, () => operation(pick, version));
        return {
          name: `transaction ${ops.map(({ type, path: at }) => `${type} ${at}`).join(', ')}`,
          run: (zk) => zk.transaction(ops),
        };
      }
    }
  };
  return Array.from({ length }, () => ({ client: random() < 0.5 ? 0 : 1, ...step() }));
}

const KINDS = [
  'create',
  'create',
  'create',
  'set',
  'set',
  'delete',
  'delete',
  'setAcl',
  'getAcl',
  'read',
  'read',
  'read',
  'watch',
  'transaction',
  'transaction',
] as const;

function operation(pick: <T>(items: readonly T[]) => T, version: () => number): TransactionOp {
  const path = pick(NAMES);
  const type = pick(['create', 'create', 'set', 'delete', 'check'] as const);
  switch (type) {
    case 'create': {
      const mode = pick(MODES);
      return { type, path, data: bytes('t'), options: { mode, acl: pick(LISTS) } };
    }
    case 'set':
      return { type, path, data: bytes('transaction'), version: version() };
    case 'delete':
    case 'check':
      return { type, path, version: version() };
  }
}

/** Sorts children, because their order differs between servers. */
async function sortedRead(read: Promise<unknown>): Promise<unknown> {
  const result = await read;
  if (typeof result !== 'object' || result === null || !('children' in result)) return result;
  return { ...result, children: [...(result.children as string[])].sort() };
}

function follow(zk: ZooKeeper, path: string, mode: 'persistent' | 'persistent-recursive', log: Log): Promise<string> {
  return new Promise((resolve) => {
    const set = new Set<string>();
    zk.watch(path, mode, {
      onEvent: log.onEvent,
      onReset: () => {
        if (!set.has('once')) resolve('set');
        set.add('once');
      },
    });
  });
}

/**
 * Replaces numbers that differ between servers: transaction ids by their rank, session ids by their client. Omits
 * times.
 */
export function normalized(lines: readonly unknown[], sessions: readonly bigint[]): unknown[] {
  const zxids = new Set<bigint>();
  const visit = (value: unknown, onStat: (stat: Stat) => unknown): unknown => {
    if (value instanceof Uint8Array) return Buffer.from(value).toString();
    if (Array.isArray(value)) return value.map((item) => visit(item, onStat));
    if (typeof value !== 'object' || value === null) return value;
    if ('czxid' in value) return onStat(value as Stat);
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, visit(item, onStat)]));
  };
  visit(lines, ({ czxid, mzxid, pzxid }) => [czxid, mzxid, pzxid].forEach((zxid) => zxids.add(zxid)));
  const ranks = new Map([...zxids].sort((one, other) => (one < other ? -1 : 1)).map((zxid, rank) => [zxid, rank]));
  return visit(lines, (stat) => ({
    ...stat,
    czxid: ranks.get(stat.czxid),
    mzxid: ranks.get(stat.mzxid),
    pzxid: ranks.get(stat.pzxid),
    ephemeralOwner: stat.ephemeralOwner === 0n ? 'no client' : `client ${sessions.indexOf(stat.ephemeralOwner)}`,
    ctime: 'some time',
    mtime: 'some time',
  })) as unknown[];
}
