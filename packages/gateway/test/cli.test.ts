/** `nodepool lease` with a gateway. */

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { run } from '@nodepool/cli';
import type { LeaseDocument } from '@nodepool/requestor/http';
import { inState, TOKENS, World, type RunningGateway } from './support/world.js';

let world: World;
let gateway: RunningGateway;

beforeAll(async () => {
  world = await World.start();
  gateway = await world.gateway();
  await writeFile(join(world.folder, 'token'), `${TOKENS.acme}\n`);
});
afterAll(() => world.stop());

interface Ran {
  readonly code: number;
  readonly printed: string;
  readonly noted: string;
}

async function nodepool(...args: readonly string[]): Promise<Ran> {
  let [printed, noted] = ['', ''];
  const code = await run(['lease', ...args], {
    out: { print: (text) => void (printed += `${text}\n`), note: (text) => void (noted += `${text}\n`) },
    env: { NODEPOOL_GATEWAY: gateway.url, NODEPOOL_TOKEN_FILE: join(world.folder, 'token'), PATH: '/usr/bin:/bin' },
    interrupted: new AbortController().signal,
  });
  return { code, printed, noted };
}

it('creates, shows, lists, renews and releases leases', async () => {
  const created = await nodepool(
    'create',
    'debian',
    'windows',
    '--wait',
    '--name',
    'job',
    '--data',
    '{"a":1}',
    '-o',
    'json',
  );
  expect(created.code).toBe(0);
  const lease = JSON.parse(created.printed) as LeaseDocument;
  expect(lease).toMatchObject({ state: 'ready', name: 'job', data: { a: 1 }, nodes: [{}, {}] });
  const { printed } = await nodepool('show', lease.id);
  expect(printed).toContain(`| ${lease.id} | job`);
  expect(printed).toContain('192.0.2.7');
  expect((await nodepool('list', '--state', 'ready', '--name', 'job', '-o', 'name')).printed).toBe(`${lease.id}\n`);
  expect((await nodepool('list', '--name', 'other', '-o', 'name')).printed).toBe('');

  const renewed = await nodepool('renew', lease.id, '--lifetime', '3h', '-o', 'json');
  expect(JSON.parse(renewed.printed)).toMatchObject({ lifetime: 10_800 });
  const released = await nodepool('release', lease.id, '--outcome', 'failure', '--hold', '10m', '-o', 'name');
  expect([released.code, released.printed]).toEqual([0, `${lease.id}\n`]);
  await inState(gateway.client(), lease.id, 'ended');
  expect((await nodepool('release', lease.id)).code).toBe(0);
  await world.clean();
});

it('creates one lease per key', async () => {
  const ids = [
    await nodepool('create', 'debian', '--key', 'k', '-o', 'name'),
    await nodepool('create', 'debian', '--key', 'k', '-o', 'name'),
  ];
  expect(ids[0]?.printed).toMatch(/^[0-9a-f]{32}\n$/);
  expect(ids[1]).toEqual(ids[0]);
  await nodepool('release', ids[0]?.printed.trim() ?? '');
});

it('explains refusals, wrong usage and timeouts', async () => {
  world.launcher.mode = 'wait';
  const cases: readonly (readonly [number, string, readonly string[]])[] = [
    [1, 'there is no such lease', ['show', '0'.repeat(32)]],
    [2, '--hold is for release, not for create', ['create', 'debian', '--hold', '1m']],
    [2, 'create needs the labels', ['create']],
    [2, '--data is not JSON', ['create', 'debian', '--data', '{']],
    [2, 'is not the address of a gateway', ['list', '--gateway', 'nodepool']],
    [1, 'the token file /nowhere cannot be read', ['list', '--token-file', '/nowhere']],
    [3, 'has no nodes within 1 s; it still waits', ['create', 'debian', '--wait', '--timeout', '1s']],
    [1, 'has no node in use', ['ssh', '']],
  ];
  for (const [code, reason, args] of cases) {
    const waiting = args[1] === '' ? [args[0] ?? '', (await gateway.client().create({ labels: ['debian'] })).id] : args;
    const ran = await nodepool(...waiting);
    expect([args, ran.code, ran.noted]).toEqual([args, code, expect.stringContaining(reason)]);
  }
});
