/** The program `nodepool-gateway` on a real ZooKeeper server: two processes that are killed, TLS, signals. */

import { spawn, type ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { request as httpsRequest } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import { systemClock } from '@nodepool/core';
import { freePorts, makeCertificates, zooKeeperForTests, type ZooKeeperForTests } from '@nodepool/dev-zookeeper';
import { LeaseClient } from '@nodepool/requestor/http';
import { connect } from '@nodepool/zookeeper';
import { ScriptedLauncher } from './support/scripted-launcher.js';
import { inState, until } from './support/world.js';

const PROGRAM = join(__dirname, '..', 'dist', 'bin.js');
const TOKEN = 'token-of-the-processes-0123456789';

let zooKeeper: ZooKeeperForTests;
let launcher: ScriptedLauncher;
let folder = '';
const children: ChildProcess[] = [];

beforeAll(async () => {
  if (!existsSync(PROGRAM)) throw new Error('the program is not built; run `pnpm build` first');
  zooKeeper = await zooKeeperForTests();
  folder = await mkdtemp(join(tmpdir(), 'gateways-'));
  const [host = '', port = ''] = zooKeeper.servers.replace(/\/.*$/, '').split(':');
  const chroot = zooKeeper.servers.includes('/')
    ? `, chroot: ${zooKeeper.servers.slice(zooKeeper.servers.indexOf('/'))}`
    : '';
  await writeFile(
    join(folder, 'nodepool.yaml'),
    `zookeeper-servers: [{host: ${host}, port: ${port}${chroot}}]\nlabels: []\nproviders: []\n`,
  );
  const sha256 = createHash('sha256').update(TOKEN).digest('hex');
  await writeFile(
    join(folder, 'tokens.yaml'),
    `tokens: [{name: test, sha256: ${sha256}, tenant: test, labels: ["*"]}]\n`,
  );
  launcher = new ScriptedLauncher(connect({ servers: zooKeeper.servers }), systemClock);
  await launcher.start();
});
afterEach(async () => {
  await Promise.all(children.splice(0).map((child) => kill(child)));
});
afterAll(async () => {
  await launcher.stop();
  await zooKeeper.stop();
  await rm(folder, { recursive: true, maxRetries: 20 });
});

async function kill(child: ChildProcess, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill(signal);
  await once(child, 'exit');
}

interface Process {
  readonly child: ChildProcess;
  readonly client: LeaseClient;
  readonly url: string;
}

async function startGateway(name: string, settings = ''): Promise<Process> {
  const [port = 0] = await freePorts(1);
  const file = join(folder, `${name}.yaml`);
  await writeFile(file, `listen: {port: ${port}}\ntokens: tokens.yaml\n${settings}`);
  const args = [PROGRAM, '-c', join(folder, 'nodepool.yaml'), '-g', file];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  children.push(child);
  child.stderr.resume();
  const url = `http://127.0.0.1:${port}`;
  if (settings === '') await until(async () => (await fetch(`${url}/ready`).catch(() => undefined))?.ok === true);
  return { child, url, client: new LeaseClient({ url, token: TOKEN, retryForMs: 20_000 }) };
}

it('a killed gateway leaves its leases to the other one, whatever it was doing', async () => {
  let first = await startGateway('one');
  const second = await startGateway('two');
  for (const state of ['created', 'ready', 'ending'] as const) {
    launcher.mode = state === 'created' ? 'wait' : 'serve';
    const { id } = await first.client.create({ labels: ['debian', 'windows'] }, { key: state });
    if (state !== 'created') await first.client.ready(id);
    if (state === 'ending') await first.client.release(id, { outcome: 'success' });
    await kill(first.child);

    launcher.resume();
    expect((await second.client.create({ labels: ['debian', 'windows'] }, { key: state })).id).toBe(id);
    if (state !== 'ending') {
      const ready = await second.client.ready(id);
      expect(ready.nodes.map((node) => node.state)).toEqual(['in-use', 'in-use']);
      await second.client.renew(id);
      await second.client.release(id);
    }
    await inState(second.client, id, 'ended');
    await until(() => Promise.resolve(launcher.store.nodes.size === 0 && launcher.store.requests.size === 0));
    first = await startGateway('one');
  }
});

it('nodes stay with their lease while no gateway runs', async () => {
  const first = await startGateway('one');
  const { id } = await first.client.create({ labels: ['debian'] });
  const { nodes } = await first.client.ready(id);
  await kill(first.child);
  const second = await startGateway('two');
  expect((await second.client.get(id)).nodes).toEqual(nodes);
  await kill(second.child, 'SIGTERM');
  expect(second.child.exitCode).toBe(0);
  const third = await startGateway('three');
  await third.client.release(id);
  await inState(third.client, id, 'ended');
});

it('uses TLS, and a renewed certificate without a restart', async () => {
  const made = [await makeCertificates(join(folder, 'a')), await makeCertificates(join(folder, 'b'))];
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
  const use = async (at: number): Promise<void> => {
    await writeFile(key, await readFile(made[at]!.serverKey));
    await writeFile(cert, await readFile(made[at]!.serverCert));
  };
  await use(0);
  const { child, url } = await startGateway('tls', 'tls: {cert: cert.pem, key: key.pem}\n');
  const { port } = new URL(url);
  const issuerOf = (ca: string): Promise<number | undefined> =>
    new Promise((resolve) => {
      const options = {
        ca,
        port,
        host: '127.0.0.1',
        path: '/live',
        agent: false,
        checkServerIdentity: () => undefined,
      };
      httpsRequest(options, (answer) => {
        answer.resume();
        resolve(answer.statusCode);
      })
        .on('error', () => resolve(undefined))
        .end();
    });
  const authorities = await Promise.all(made.map(({ ca }) => readFile(ca, 'utf8')));
  await until(async () => (await issuerOf(authorities[0] ?? '')) === 200);
  expect(await issuerOf(authorities[1] ?? '')).toBeUndefined();
  await use(1);
  child.kill('SIGHUP');
  await until(async () => (await issuerOf(authorities[1] ?? '')) === 200);
});

it('explains settings that cannot be used, and generates tokens', async () => {
  await writeFile(join(folder, 'bad.yaml'), 'listen: {address: 0.0.0.0}\ntoken: x\n');
  const args = [PROGRAM, '-c', join(folder, 'nodepool.yaml'), '-g', join(folder, 'bad.yaml')];
  const bad = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  children.push(bad);
  expect(await text(bad.stderr)).toMatch(/bad\.yaml:2:1: token: expected .*"tokens"/);
  expect(bad.exitCode ?? (await once(bad, 'exit'))[0]).toBe(1);

  const generated = spawn(process.execPath, [PROGRAM, '--generate-token', 'gitlab'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(generated);
  const [token = '', , , ...entry] = (await text(generated.stdout)).split('\n');
  expect(token).toMatch(/^npl_[\w-]{43}$/);
  expect(entry.join('\n')).toContain(`sha256: ${createHash('sha256').update(token).digest('hex')}`);
});
