/**
 * The floor: a launcher without any logic. It answers each request with one prepared node, in the durable transactions
 * that a launcher of version 1.0 needed for a node's life. It has no scheduling, cache, limits, driver or recovery, so
 * that the ratio of a real launcher to it is the cost of everything that makes a launcher useful.
 *
 * Arguments: the addresses of the ZooKeeper servers, the label, and a file for the latencies of the decisions, which it
 * writes when it is terminated.
 */

import { writeFileSync } from 'node:fs';
import { randomBytes } from 'node:crypto';
import { connect, ensurePath, type TransactionOp, type ZooKeeper } from '@nodepool/zookeeper';
import { systemClock } from '@nodepool/core';
import { deletingNode, fulfilledRequest, initialNode, launchingNode, pendingRequest, readyNode } from './prepared.js';

const REQUESTS = '/nodepool/requests';
const REQUEST_LOCKS = '/nodepool/requests-lock';
const NODES = '/nodepool/nodes';
const POOLS = '/nodepool/components/pool';
const REQUEST_PATH = /^\/nodepool\/requests\/([^/]+)$/;
const NODE_PATH = /^\/nodepool\/nodes\/([^/]+)$/;
const CONTENDER_PATH = /^\/nodepool\/nodes\/([^/]+)\/lock\/[^/]+$/;
const OWNER = Buffer.from('floor');

class Floor {
  /** From the creation of each request by its requestor until an instance could be created (ms). */
  readonly decisions: number[] = [];
  private readonly locked = new Set<string>();
  private readonly used = new Set<string>();
  private readonly removing = new Set<string>();

  constructor(
    private readonly zooKeeper: ZooKeeper,
    private readonly label: string,
  ) {}

  async start(): Promise<void> {
    const { zooKeeper } = this;
    for (const path of [REQUESTS, REQUEST_LOCKS, NODES, POOLS]) await ensurePath(zooKeeper, path);
    await this.watch(REQUESTS, ({ type, path }) => {
      const id = REQUEST_PATH.exec(path)?.[1];
      if (id === undefined) return;
      if (type === 'created') run(this.serve(id));
      else if (type === 'deleted') run(zooKeeper.delete(`${REQUEST_LOCKS}/${id}`));
    });
    await this.watch(NODES, ({ type, path }) => {
      const changed = type === 'changed' ? NODE_PATH.exec(path)?.[1] : undefined;
      if (changed !== undefined) run(this.read(changed));
      const contended = type === 'changed' ? undefined : CONTENDER_PATH.exec(path)?.[1];
      if (contended === undefined) return;
      if (type === 'created') this.locked.add(contended);
      else this.locked.delete(contended);
      this.removeIfFree(contended);
    });
    const pool = JSON.stringify({ supported_labels: [this.label] });
    await zooKeeper.create(`${POOLS}/floor-`, Buffer.from(pool), { mode: 'ephemeral-sequential' });
  }

  private async watch(
    path: string,
    onEvent: (event: { readonly type: string; readonly path: string }) => void,
  ): Promise<void> {
    await new Promise<void>((resolve) => {
      this.zooKeeper.watch(path, 'persistent-recursive', { onEvent, onReset: resolve });
    });
  }

  private async serve(id: string): Promise<void> {
    const { zooKeeper } = this;
    const path = `${REQUESTS}/${id}`;
    const { data } = await zooKeeper.get(path);
    const request = Buffer.from(data).toString();
    const lock = `${REQUEST_LOCKS}/${id}`;
    const accepted = await zooKeeper.transaction([
      { type: 'set', path, data: Buffer.from(pendingRequest(request)), version: 0 },
      {
        type: 'create',
        path: `${NODES}/`,
        data: Buffer.from(initialNode(this.label, id)),
        options: { mode: 'persistent-sequential' },
      },
      ...lockOps(lock),
    ]);
    const nodePath = created(accepted[1]);
    const contender = created(accepted[3]);
    const started = await zooKeeper.transaction([
      { type: 'set', path: nodePath, data: Buffer.from(launchingNode(this.label, id)), version: 0 },
      ...lockOps(`${nodePath}/lock`),
    ]);
    const createdAt = Number(/"created_time":\s*([\d.]+)/.exec(request)?.[1] ?? NaN);
    this.decisions.push(systemClock.now() - createdAt * 1000);
    const node = nodePath.slice(NODES.length + 1);
    await zooKeeper.transaction([
      { type: 'set', path, data: Buffer.from(fulfilledRequest(request, node)), version: 1 },
      { type: 'delete', path: contender },
      { type: 'set', path: nodePath, data: Buffer.from(readyNode(this.label, id)), version: 1 },
      { type: 'delete', path: created(started[2]) },
    ]);
  }

  private async read(node: string): Promise<void> {
    const { data } = await this.zooKeeper.get(`${NODES}/${node}`);
    if (!Buffer.from(data).includes('"used"')) return;
    this.used.add(node);
    this.removeIfFree(node);
  }

  private removeIfFree(node: string): void {
    if (this.locked.has(node) || !this.used.delete(node) || this.removing.has(node)) return;
    this.removing.add(node);
    run(this.remove(node));
  }

  private async remove(node: string): Promise<void> {
    const { zooKeeper } = this;
    const path = `${NODES}/${node}`;
    const lock = `${path}/lock`;
    const results = await zooKeeper.transaction([
      { type: 'set', path, data: Buffer.from(deletingNode(this.label)) },
      { type: 'delete', path: lock },
      ...lockOps(lock),
    ]);
    await zooKeeper.transaction([
      { type: 'delete', path: created(results[3]) },
      { type: 'delete', path: lock },
      { type: 'delete', path },
    ]);
    this.removing.delete(node);
  }
}

/** Returns the operations that create a lock directory and its contender. */
function lockOps(path: string): readonly TransactionOp[] {
  const contender = `${path}/${randomBytes(16).toString('hex')}__lock__`;
  return [
    { type: 'create', path },
    { type: 'create', path: contender, data: OWNER, options: { mode: 'ephemeral-sequential' } },
  ];
}

function created(result: Awaited<ReturnType<ZooKeeper['transaction']>>[number] | undefined): string {
  if (result?.type !== 'create') throw new Error('the operation creates no znode');
  return result.path;
}

/** Ends the program at the first error, because a floor with failures measures nothing. */
function run(work: Promise<void>): void {
  work.catch((error: unknown) => {
    process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    process.exit(1);
  });
}

async function main(): Promise<void> {
  const [servers = '', label = '', file = ''] = process.argv.slice(2);
  const zooKeeper = connect({ servers });
  const floor = new Floor(zooKeeper, label);
  await floor.start();
  process.once('SIGTERM', () => {
    writeFileSync(file, JSON.stringify(floor.decisions));
    run(zooKeeper.close());
  });
}

run(main());
