/** Mutations that mistreat requests and the nodes allocated to them. */

import type { TransactionOp } from '@nodepool/zookeeper';
import type { Mutation } from '../mutation.js';
import {
  NODE,
  declining,
  fulfils,
  hesitating,
  reallocating,
  registeringOnce,
  REQUEST,
  rewriting,
} from '../mutators.js';
import { overlay } from '@nodepool/simulated-process';
import { TENANTS } from '../site.js';

export const REQUESTS_MUTATIONS: readonly Mutation[] = [
  {
    name: 'allocates the nodes of a request to the next one too',
    rule: 'S1',
    firstSeed: 7,
    writes: reallocating(),
  },
  {
    name: 'reorders the nodes of a request',
    rule: 'S2',
    writes: rewriting(REQUEST, (request) => {
      const { nodes } = request;
      return request['state'] === 'fulfilled' && Array.isArray(nodes)
        ? { ...request, nodes: nodes.toReversed() }
        : request;
    }),
  },
  {
    name: 'fulfils a request and keeps the locks of its nodes',
    rule: 'S2',
    writes: (ops) =>
      ops.some((op) => fulfils(op)) ? ops.filter((op) => op.type !== 'delete' || !op.path.includes('/nodes/')) : ops,
  },
  {
    name: 'writes without versions and without the lock’s fence',
    rule: 'S6',
    writes: (ops) =>
      ops.flatMap((op): TransactionOp[] => {
        if (op.type === 'check') return [];
        return op.type === 'set' ? [{ type: 'set', path: op.path, data: op.data }] : [op];
      }),
  },
  {
    name: 'sets used nodes to ready',
    rule: 'S7',
    writes: rewriting(NODE, (node) =>
      node['state'] === 'deleting' ? { ...node, state: 'ready', allocated_to: null } : node,
    ),
  },
  {
    name: 'deletes unknown fields of records',
    rule: 'S11',
    writes: rewriting(REQUEST, ({ span_info: _lost, ...known }) => known),
  },
  {
    name: 'forgets every third request',
    rule: 'L1',
    store: (store) => declining(store, ({ id, state }) => state === 'requested' && id.endsWith('3')),
  },
  {
    name: 'never accepts an orphaned request',
    rule: 'L3',
    fault: 'all',
    store: (store) => declining(store, ({ state }) => state === 'pending'),
  },
  {
    name: 'does not register again with a new session',
    rule: 'L4',
    fault: 'all',
    client: registeringOnce,
  },
  {
    name: 'leaks the locks of withdrawn requests',
    rule: 'L6',
    client: (zooKeeper) =>
      overlay(zooKeeper, {
        delete: (path, options) =>
          path.startsWith('/nodepool/requests-lock/') ? Promise.resolve() : zooKeeper.delete(path, options),
      }),
  },
  {
    name: 'accepts requests again and again without serving them',
    rule: 'W1',
    client: hesitating,
  },
  {
    name: 'serves every other request before those of the highest priority',
    rule: 'O1',
    shows: 'waits for the pool',
    store: (store) => declining(store, ({ id }) => id.startsWith('100-')),
  },
  {
    name: 'serves every other request before those of the highest priority, at the quota of the provider',
    rule: 'O1',
    shows: 'waits for the provider',
    fault: 'quota',
    store: (store) => declining(store, ({ id }) => id.startsWith('100-')),
  },
  {
    name: 'serves every other request of a tenant before those of the highest priority',
    rule: 'O1',
    shows: 'waits for the tenant',
    launchers: 1,
    firstSeed: 4,
    store: (store) => declining(store, ({ id, tenant }) => id.startsWith('100-') && tenant === TENANTS[1]),
  },
];
