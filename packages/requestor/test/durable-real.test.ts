/** Processes that hold durable leases on a real ZooKeeper server, and are killed. */

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { systemClock } from '@nodepool/core';
import { zooKeeperForTests, type ZooKeeperForTests } from '@nodepool/dev-zookeeper';
import { connect, type ZooKeeper } from '@nodepool/zookeeper';
import { openRequestor, type Requestor } from '../src/index.js';
import { ScriptedLauncher } from './support/scripted-launcher.js';

const HOLDER = join(__dirname, 'support', 'durable-holder.cjs');
const OWNER = 'test/real';

let server: ZooKeeperForTests;
let zooKeeper: ZooKeeper;
let requestor: Requestor;
let launcher: ScriptedLauncher;

beforeAll(async () => {
  server = await zooKeeperForTests();
  zooKeeper = connect({ servers: server.servers });
  requestor = openRequestor(zooKeeper, { name: 'test' });
  launcher = new ScriptedLauncher(connect({ servers: server.servers }), systemClock);
  await launcher.start();
});
afterAll(async () => {
  await requestor.close();
  await zooKeeper.close();
  await launcher.stop();
  await server.stop();
});

function startHolder(requestId: string): ChildProcess & { readonly stdout: NodeJS.ReadableStream } {
  return spawn(process.execPath, [HOLDER, server.servers, requestId, OWNER], { stdio: ['ignore', 'pipe', 'inherit'] });
}

async function kill(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL');
  await once(child, 'exit');
}

it('nodes of a killed process stay in use, and another process takes them over and returns them', async () => {
  const request = await requestor.request({ labels: ['small', 'big'], durable: true });
  const holder = startHolder(request.id);
  const [line] = (await once(createInterface({ input: holder.stdout }), 'line')) as [string];
  const ids = JSON.parse(line) as string[];
  await kill(holder);

  expect(await requestor.leases(OWNER)).toEqual([{ requestId: request.id, nodes: ids }]);
  const next = startHolder(request.id);
  const [again] = (await once(createInterface({ input: next.stdout }), 'line')) as [string];
  expect(JSON.parse(again)).toEqual(ids);
  const lease = await requestor.adoptLease(OWNER, ids);
  await kill(next);
  await lease.confirm();
  expect(launcher.deleted).toEqual([]);
  await lease.return();
  await lease.deleted();
  expect(launcher.deleted.toSorted()).toEqual(ids);
  expect(await requestor.leases(OWNER)).toEqual([]);
});

it.each(['before', 'while'])(
  'a process that is killed %s it takes its nodes leaves the request or the lease',
  async (moment) => {
    const request = await requestor.request({ labels: ['small'], durable: true });
    const [id = ''] = await request.fulfilled();
    const locked = new Promise<void>((resolve) => {
      void zooKeeper.children(`/nodepool/nodes/${id}/lock`, { watch: () => resolve() });
    });
    const holder = startHolder(request.id);
    if (moment === 'while') await locked;
    await kill(holder);
    const lease = await requestor.resume(request.id).take({ durable: OWNER, timeoutMs: 60_000 });
    expect(lease.nodes.map(({ id: node, label, state }) => [node, label, state])).toEqual([[id, 'small', 'in-use']]);
    await lease.return();
    await lease.deleted();
    expect(await requestor.leases(OWNER)).toEqual([]);
  },
);
