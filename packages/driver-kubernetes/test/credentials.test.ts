/** Credentials that are replaced in their files while a provider runs. */

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { createServer, type Server } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TLSSocket } from 'node:tls';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { isJsonObject, sleep, type JsonObject } from '@nodepool/core';
import { TestProvider } from '@nodepool/driver-kit';
import { kubernetesDriver, type Flavour } from '../src/index.js';
import { environmentOf, openCluster, section, type OpenCluster } from './cluster.js';

let open: OpenCluster;
let provider: TestProvider;
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'credentials-'));
});

afterEach(async () => {
  await provider.stop();
  await open.cluster.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Starts a provider; `prepare` changes the kubeconfig file before. */
async function start(flavour: Flavour = 'kubernetes', prepare = (): void => undefined): Promise<void> {
  open = await openCluster(flavour);
  prepare();
  const driver = kubernetesDriver(flavour, environmentOf(open.cluster.kubeconfig));
  provider = await new TestProvider({ time: open.time, driver, section: section(flavour) }).start();
}

const pass = (ms: number): Promise<void> => provider.end(sleep(open.time.clock, ms));
const list = (): Promise<readonly unknown[]> => provider.end(provider.provider.listNodes(provider.call()));
const failedCalls = (): unknown[] => provider.apiCalls.filter(({ status }) => typeof status !== 'number');

/** Lets the cluster accept another token instead of the one in the kubeconfig file. */
function replaceToken(): void {
  open.cluster.addToken('admin', 'second');
  open.cluster.revokeToken('admin-token');
}

/** Replaces a text in the kubeconfig file. */
function replace(before: string, after: string): void {
  const { kubeconfig } = open.cluster;
  expect(readFileSync(kubeconfig, 'utf8')).toContain(before);
  writeFileSync(kubeconfig, readFileSync(kubeconfig, 'utf8').replaceAll(before, after));
}

/** Replaces the kubeconfig's user `admin`. */
function setAdmin(user: JsonObject): void {
  replace('{"token":"admin-token"}', JSON.stringify(user));
}

it('a token that was replaced in the kubeconfig file is used by calls and watches, without a failed call', async () => {
  await start();
  await pass(2000);
  const launches = ['0000000001', '0000000002', '0000000003'].map((node) => provider.begin(node));
  replaceToken();
  replace('admin-token', 'second');
  open.cluster.watches.end();
  await provider.end(Promise.all(launches));
  expect(failedCalls()).toEqual([]);
  expect(await list()).toHaveLength(3);
});

it('open watches continue with the former credentials, and end with the provider', async () => {
  await start();
  replaceToken();
  replace('admin-token', 'second');
  await provider.launch();
  expect(provider.count('pods.list')).toBe(1);
  const watches = provider.apiCalls.filter(({ operation }) => operation === 'pods.watch');
  // A watch that begins with the former token is refused.
  expect(watches.filter(({ status }) => status !== 401)).toEqual([]);
  await provider.stop();
  await open.time.until(() => open.cluster.watches.count === 0, 5000);
  expect(open.cluster.watches.count).toBe(0);
});

it('a refused call names the remedy, and calls and watches continue after it', async () => {
  await start();
  replaceToken();
  open.cluster.watches.drop();
  expect(await provider.failedLaunch()).toMatchObject({
    code: 'auth',
    outcome: 'not-applied',
    message: expect.stringMatching(/refuses the credentials of context admin of .*kubeconfig; replace them there/),
  });
  await pass(5000);
  await expect(list()).rejects.toMatchObject({ code: 'auth' });
  replace('admin-token', 'second');
  await pass(120_000);
  await provider.launch('0000000002');
  expect(await list()).toHaveLength(1);
});

it('refused calls read the kubeconfig file once per second', async () => {
  await start();
  replaceToken();
  await provider.failedLaunch();
  replace('admin-token', 'second');
  // The file was read within the last second.
  expect(await provider.failedLaunch()).toMatchObject({ code: 'auth' });
  await pass(1000);
  await provider.launch();
});

it.each([
  ['an invalid file', '"users"', '"users'],
  ['a file without the context', '"name":"admin","context"', '"name":"other","context"'],
  ['an invalid certificate', '"user":{', '"user":{"client-certificate-data":"eA==",'],
])('%s does not replace the credentials', async (_case, before, after) => {
  await start();
  replaceToken();
  replace(before, after);
  expect(await provider.failedLaunch()).toMatchObject({ code: 'auth' });
  open.cluster.addToken('admin', 'admin-token');
  await provider.launch();
});

it('a kubeconfig file with another server does not replace the credentials', async () => {
  await start();
  const { externalId } = await provider.launch();
  const other = await openCluster('kubernetes');
  replaceToken();
  replace(open.cluster.url, other.cluster.url);
  open.cluster.watches.drop();
  await pass(5000);
  await expect(list()).rejects.toMatchObject({ code: 'auth' });
  expect(other.cluster.calls.count('*')).toBe(0);
  await other.cluster.close();
  expect(open.cluster.list('namespaces').map(({ metadata }) => metadata.name)).toContain(externalId);
});

it('a token file is read again after a refusal', async () => {
  const tokenFile = join(folder, 'token');
  writeFileSync(tokenFile, 'admin-token\n');
  await start('kubernetes', () => setAdmin({ tokenFile }));
  replaceToken();
  writeFileSync(tokenFile, 'second\n');
  await provider.launch();
  expect(failedCalls()).toEqual([]);
});

it('a token file that no longer exists is replaced by the token in the kubeconfig file', async () => {
  const tokenFile = join(folder, 'token');
  writeFileSync(tokenFile, 'admin-token\n');
  await start('kubernetes', () => setAdmin({ tokenFile }));
  rmSync(tokenFile);
  replace(JSON.stringify({ tokenFile }), '{"token":"admin-token"}');
  await pass(60_000);
  await provider.launch();
  expect(failedCalls()).toEqual([]);
});

it('Zuul gets the replaced token of the context, although the former one is still valid', async () => {
  await start('openshiftpods');
  open.cluster.addToken('admin', 'second');
  replace('admin-token', 'second');
  await pass(60_000);
  const { connection } = await provider.launch();
  expect(isJsonObject(connection?.port) && connection.port['token']).toBe('second');
});

describe('certificates', () => {
  let front: Server;
  let authority: string;
  let accepted: string;

  /** Creates a certificate that is its own authority. */
  function certificate(name: string): { readonly cert: string; readonly key: string } {
    const [key, cert] = [join(folder, `${name}.key`), join(folder, `${name}.pem`)];
    const how = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '30'];
    const subject = ['-subj', `/CN=${name}`, '-addext', 'subjectAltName=IP:127.0.0.1'];
    execFileSync('openssl', ['req', '-x509', ...how, ...subject, '-keyout', key, '-out', cert], { stdio: 'ignore' });
    return { cert: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8') };
  }

  const base64 = (text: string): string => Buffer.from(text).toString('base64');

  /** Starts a provider whose cluster has TLS, and authenticates client certificates by their subject. */
  async function startWithTls(): Promise<void> {
    const server = certificate('first-server');
    front = createServer({ ...server, requestCert: true, rejectUnauthorized: false }, (incoming, outgoing) => {
      const { socket } = incoming;
      const shown = socket instanceof TLSSocket ? socket.getPeerX509Certificate() : undefined;
      const token = shown?.subject === `CN=${accepted}` ? 'admin-token' : 'unknown';
      const headers = { ...incoming.headers, authorization: `Bearer ${token}` };
      const { method, url = '' } = incoming;
      const call = request(open.cluster.url + url, { method, headers, agent: false }, (answer) => {
        outgoing.writeHead(answer.statusCode ?? 0, answer.headers);
        outgoing.flushHeaders();
        answer.pipe(outgoing);
        answer.once('error', () => outgoing.destroy());
      });
      call.once('error', () => outgoing.destroy());
      outgoing.once('close', () => call.destroy());
      incoming.pipe(call);
    });
    await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve));
    const address = front.address();
    if (address === null || typeof address === 'string') throw new Error('the server has no port');
    accepted = 'first';
    const { cert, key } = certificate('first');
    await start('kubernetes', () => {
      setAdmin({ 'client-certificate-data': base64(cert), 'client-key-data': base64(key) });
      authority = base64(server.cert);
      const url = `https://127.0.0.1:${address.port}`;
      replace(`"${open.cluster.url}"`, `"${url}","certificate-authority-data":"${authority}"`);
    });
  }

  afterEach(() => {
    front.closeAllConnections();
    front.close();
  });

  it('a client certificate that was replaced is used by calls and watches', async () => {
    await startWithTls();
    await pass(2000);
    accepted = 'second';
    const { cert, key } = certificate('second');
    replace(base64(readFileSync(join(folder, 'first.pem'), 'utf8')), base64(cert));
    replace(base64(readFileSync(join(folder, 'first.key'), 'utf8')), base64(key));
    open.cluster.watches.end();
    await provider.cleanUpRound();
    await open.time.until(() => open.cluster.watches.count === 2, 5000);
    expect(failedCalls()).toEqual([]);
    expect(await list()).toEqual([]);
  });

  it('the certificate of an authority that was replaced is used', async () => {
    await startWithTls();
    const server = certificate('second-server');
    replace(authority, base64(server.cert));
    front.setSecureContext(server);
    front.closeAllConnections();
    await provider.cleanUpRound();
    await open.time.until(() => open.cluster.watches.count === 2, 5000);
    expect(await list()).toEqual([]);
  });
});
