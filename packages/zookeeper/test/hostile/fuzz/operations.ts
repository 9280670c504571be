/** The calls whose answers are fuzzed, by their names in the corpus. */

import type { ZooKeeper } from '../../../src/index.js';

export type Attempt = (zk: ZooKeeper) => Promise<unknown>;

const DATA = Buffer.from('data');
const watch = (): void => undefined;

/** Ordered so that all of them succeed at a server without a znode `/fuzz`. */
export const OPERATIONS: Readonly<Record<string, Attempt>> = {
  existsNot: (zk) => zk.exists('/fuzz', { watch }),
  create: (zk) => zk.create('/fuzz', DATA),
  createAgain: (zk) => zk.create('/fuzz', DATA),
  createSequential: (zk) => zk.create('/fuzz/n-', DATA, { mode: 'ephemeral-sequential' }),
  createContainer: (zk) => zk.create('/fuzz/c', undefined, { mode: 'container' }),
  exists: (zk) => zk.exists('/fuzz', { watch }),
  get: (zk) => zk.get('/fuzz', { watch }),
  set: (zk) => zk.set('/fuzz', DATA),
  setOther: (zk) => zk.set('/fuzz', DATA, { version: 99 }),
  children: (zk) => zk.children('/fuzz', { watch }),
  getAcl: (zk) => zk.getAcl('/fuzz'),
  setAcl: (zk) => zk.setAcl('/fuzz', [{ permissions: 31, scheme: 'world', id: 'anyone' }]),
  sync: (zk) => zk.sync('/fuzz'),
  transaction: (zk) =>
    zk.transaction([
      { type: 'check', path: '/fuzz' },
      { type: 'create', path: '/fuzz/t', data: DATA },
      { type: 'create', path: '/fuzz/t/c', options: { mode: 'container' } },
      { type: 'set', path: '/fuzz/t', data: DATA },
      { type: 'delete', path: '/fuzz/t/c' },
      { type: 'delete', path: '/fuzz/t' },
    ]),
  transactionRefused: (zk) =>
    zk.transaction([
      { type: 'set', path: '/fuzz', data: DATA },
      { type: 'delete', path: '/fuzz/missing' },
      { type: 'check', path: '/fuzz' },
    ]),
  readTransaction: (zk) =>
    zk.readTransaction([
      { type: 'get', path: '/fuzz' },
      { type: 'children', path: '/fuzz' },
      { type: 'get', path: '/fuzz/missing' },
    ]),
  countDescendants: (zk) => zk.countDescendants('/'),
  ephemerals: (zk) => zk.ephemerals('/'),
  delete: (zk) => zk.delete('/fuzz/c'),
};
