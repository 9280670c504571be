/** Callers that do what they may not do. */

import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { LogFields, Logger } from '@nodepool/core';
import { exportJWK, generateKeyPair, SignJWT, type CryptoKey } from 'jose';
import { LeaseRequestError, type LeaseClient, type LeaseDocument } from '@nodepool/requestor/http';
import { readSettings, settingsSource } from '../src/index.js';
import { TOKENS, until, World, type RunningGateway } from './support/world.js';

let world: World;
const sockets: Socket[] = [];

beforeEach(async () => {
  world = await World.start('limits: {requests-per-second: 1000, burst: 10000}');
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await world.stop();
});

function codeOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => 'done',
    (error: unknown) => (error instanceof LeaseRequestError ? error.code : error),
  );
}

async function listed(client: LeaseClient): Promise<readonly LeaseDocument[]> {
  const leases: LeaseDocument[] = [];
  for await (const lease of client.list()) leases.push(lease);
  return leases;
}

/** Opens a connection and sends text. */
function raw({ url }: RunningGateway, data: string): Socket {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  sockets.push(socket);
  socket.write(data);
  return socket;
}

describe('the rights of a token', () => {
  it('limit labels, priorities, tenants and lifetimes', async () => {
    const gateway = await world.gateway();
    const client = gateway.client(TOKENS.small);
    expect(await client.labels()).toEqual(['debian', 'debian-large']);
    const refused = [
      { labels: ['windows'] },
      { labels: ['debian', 'windows'] },
      { labels: ['debian'], priority: 99 },
      { labels: ['debian'], priority: 301 },
      { labels: ['debian'], tenant: 'acme' },
      { labels: ['debian'], lifetime: 601 },
    ];
    for (const lease of refused) expect([lease, await codeOf(client.create(lease))]).toEqual([lease, 'forbidden']);
    const lease = await client.create({ labels: ['debian'], priority: 300, tenant: 'small', lifetime: 600 });
    expect(lease).toMatchObject({ priority: 300, tenant: 'small', lifetime: 600 });
    expect(await codeOf(client.renew(lease.id, { lifetime: 601 }))).toBe('forbidden');
    await client.ready(lease.id);
    expect(await codeOf(client.hold(lease.id, { seconds: 601 }))).toBe('forbidden');
    expect((await client.create({ labels: ['debian'] })).priority).toBe(250);
  });

  it('limit the number of nodes, exactly, through several gateways', async () => {
    const gateways = await Promise.all([world.gateway(), world.gateway(), world.gateway()]);
    const clients = gateways.map((gateway) => gateway.client(TOKENS.small));
    const outcomes = await Promise.all(
      Array.from({ length: 30 }, (_, at) => codeOf(clients[at % 3]!.create({ labels: ['debian'] }))),
    );
    expect(outcomes.filter((outcome) => outcome === 'done')).toHaveLength(3);
    expect(outcomes.filter((outcome) => outcome === 'quota')).toHaveLength(27);
    const [first] = await listed(clients[0]!);
    await clients[0]!.release(first?.id ?? '');
    await until(async () => (await codeOf(clients[1]!.create({ labels: ['debian'] }))) === 'done');
    expect(await codeOf(clients[2]!.create({ labels: ['debian'] }))).toBe('quota');
    expect(await codeOf(clients[2]!.create({ labels: ['debian'], count: 1000 }))).toBe('quota');
  });

  it('hide the leases of others', async () => {
    const gateway = await world.gateway();
    const [acme, other, alone] = [gateway.client(), gateway.client(TOKENS.other), gateway.client(TOKENS.alone)];
    const mine = await acme.create({ labels: ['debian'] });
    const theirs = await alone.create({ labels: ['debian'] });
    for (const client of [other, alone]) {
      expect(await codeOf(client.get(mine.id))).toBe('not-found');
      expect(await codeOf(client.renew(mine.id))).toBe('not-found');
      expect(await codeOf(client.release(mine.id))).toBe('not-found');
      expect(await codeOf(client.hold(mine.id, { seconds: 60 }))).toBe('not-found');
      expect(await codeOf(client.follow(mine.id).next())).toBe('not-found');
    }
    expect((await listed(other)).map(({ id }) => id)).toEqual([]);
    expect((await listed(alone)).map(({ id }) => id)).toEqual([theirs.id]);
    expect(await codeOf(acme.get(theirs.id))).toBe('not-found');
    expect(await codeOf(gateway.client(TOKENS.lonely).get(theirs.id))).toBe('not-found');
    expect((await acme.get(mine.id)).end).toBeNull();
  });

  it('end when the token is removed from its file', async () => {
    const gateway = await world.gateway();
    const client = gateway.client();
    world.launcher.mode = 'wait';
    const { id } = await client.create({ labels: ['debian'] });
    const stream = client.follow(id);
    expect((await stream.next()).value).toMatchObject({ id });
    await writeFile(join(world.folder, 'tokens.yaml'), 'tokens: []\n');
    await gateway.settings.reload();
    expect(await codeOf(stream.next())).toBe('unauthorized');
    expect(await codeOf(gateway.client().labels())).toBe('unauthorized');
    await writeFile(join(world.folder, 'tokens.yaml'), 'tokens: [{name: x}]\n');
    await gateway.settings.reload();
    expect(gateway.settings.current.tokens).toEqual([]);
  });
});

describe('clients that send too much or too slowly', () => {
  it('are limited per token, and others are not', async () => {
    await world.configure('limits: {requests-per-second: 1, burst: 5}');
    const gateway = await world.gateway();
    const statuses = await Promise.all(
      Array.from({ length: 20 }, () => gateway.fetch('/v1/labels').then(({ status }) => status)),
    );
    expect(statuses.filter((status) => status === 429).length).toBeGreaterThan(10);
    const limited = await gateway.fetch('/v1/labels');
    expect(Number(limited.headers.get('retry-after'))).toBeGreaterThan(0);
    expect((await gateway.fetch('/v1/labels', { token: TOKENS.other })).status).toBe(200);
  });

  it('cannot guess tokens quickly', async () => {
    const gateway = await world.gateway();
    const statuses: number[] = [];
    for (let guess = 0; guess < 40; guess++) {
      statuses.push((await gateway.fetch('/v1/labels', { token: `guess-${guess}` })).status);
    }
    expect(statuses.slice(0, 20)).toEqual(Array(20).fill(401));
    expect(statuses).toContain(429);
    expect((await gateway.fetch('/v1/labels')).status).toBe(200);
  });

  it('cannot open more streams than permitted, and can again after closing one', async () => {
    await world.configure('limits: {streams: 3, streams-per-token: 2}');
    world.launcher.mode = 'wait';
    const gateway = await world.gateway();
    const { id } = await gateway.client().create({ labels: ['debian'] });
    const other = await gateway.client(TOKENS.other).create({ labels: ['debian'] });
    const open = (lease: string, token: string): Promise<Response> =>
      gateway.fetch(`/v1/leases/${lease}/events`, { token });
    const streams = [await open(id, TOKENS.acme), await open(id, TOKENS.acme)];
    expect(streams.map(({ status }) => status)).toEqual([200, 200]);
    expect((await open(id, TOKENS.acme)).status).toBe(429);
    expect((await open(other.id, TOKENS.other)).status).toBe(200);
    expect((await open(other.id, TOKENS.other)).status).toBe(429);
    await streams[0]?.body?.cancel();
    await until(async () => (await open(id, TOKENS.acme)).status === 200);
  });

  it('get 413 for a huge body, before it is complete', async () => {
    const gateway = await world.gateway();
    const socket = raw(
      gateway,
      `POST /v1/leases HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKENS.acme}\r\n` +
        'Content-Type: application/json\r\nContent-Length: 1000000000\r\n\r\n{',
    );
    const [head] = (await once(socket, 'data')) as [Buffer];
    expect(head.toString()).toMatch(/^HTTP\/1\.1 413 /);
    expect(head.toString()).toContain('application/problem+json');
  });

  it('get 400 for data that is nested too deeply for its readers', async () => {
    const gateway = await world.gateway();
    const nested = (levels: number): string =>
      `{"labels": ["debian"], "data": ${'['.repeat(levels)}${']'.repeat(levels)}}`;
    const statuses = [100, 101, 30_000].map(async (levels) => {
      const headers = { 'content-type': 'application/json' };
      return (await gateway.fetch('/v1/leases', { method: 'POST', headers, body: nested(levels) })).status;
    });
    expect(await Promise.all(statuses)).toEqual([201, 400, 400]);
  });

  it('get problem details for paths that the HTTP library refuses', async () => {
    const gateway = await world.gateway();
    for (const id of ['a'.repeat(5000), '%', '%ff']) {
      const answer = await text(raw(gateway, `GET /v1/leases/${id} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`));
      expect(answer).toMatch(/^HTTP\/1\.1 400 /);
      expect(answer).toContain('application/problem+json');
    }
  });

  it('do not delay others, and are disconnected', async () => {
    const gateway = await world.gateway();
    const head = `POST /v1/leases HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKENS.acme}\r\nContent-Length: 50\r\n`;
    const beginnings = [head, `${head}Content-Type: application/json\r\n\r\n{"la`];
    const slow = beginnings.flatMap((data) => Array.from({ length: 25 }, () => raw(gateway, data)));
    await gateway.client().labels();
    // A connection that is only idle for too long gets no answer.
    for (const answer of await Promise.all(slow.map((socket) => text(socket))))
      expect(answer).toMatch(/^HTTP\/1\.1 408 /);
  });

  it('cannot smuggle requests or use paths outside of the API', async () => {
    const gateway = await world.gateway();
    const auth = `Host: x\r\nAuthorization: Bearer ${TOKENS.acme}\r\nConnection: close\r\n`;
    const requests = [
      `GET /v1/../../etc/passwd HTTP/1.1\r\n${auth}\r\n`,
      `GET /v1/leases/%2e%2e%2f%2e%2e%2fetc HTTP/1.1\r\n${auth}\r\n`,
      `GET /v1/leases/..%c0%af.. HTTP/1.1\r\n${auth}\r\n`,
      `GET http://other/v1/leases/0/ HTTP/1.1\r\n${auth}\r\n`,
      `POST /v1/leases HTTP/1.1\r\n${auth}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      `GET /v1/leases HTTP/1.1\r\n${auth}X-A: b\rc\r\n\r\n`,
      `BREW /v1/leases HTTP/1.1\r\n${auth}\r\n`,
    ];
    for (const request of requests) {
      const answer = await text(raw(gateway, request));
      expect([request, answer.slice(0, 12)]).toEqual([request, expect.stringMatching(/^HTTP\/1\.1 4\d\d/)]);
      expect(answer).not.toContain('root:');
    }
    expect(await listed(gateway.client())).toEqual([]);
  });
});

describe('the address', () => {
  it('must be of this host without TLS', async () => {
    for (const address of ['0.0.0.0', '::', '192.0.2.1', 'example.org', '128.0.0.1']) {
      await writeFile(world.settingsFile, `listen: {address: "${address}"}\ntokens: tokens.yaml\n`);
      await expect(readSettings(world.settingsFile)).rejects.toThrow('"tls" to be set');
    }
    for (const address of ['127.0.0.1', '::1', 'localhost', '127.1.2.3']) {
      await writeFile(world.settingsFile, `listen: {address: "${address}"}\ntokens: tokens.yaml\n`);
      expect((await readSettings(world.settingsFile)).listen.address).toBe(address);
    }
    await writeFile(world.settingsFile, 'listen: {}\n');
    await expect(readSettings(world.settingsFile)).rejects.toThrow('without them no request is permitted');
  });

  it('is not opened with a certificate or a key that cannot be read', async () => {
    await writeFile(world.settingsFile, 'tls: {cert: /nonexistent/c, key: /nonexistent/k}\ntokens: tokens.yaml\n');
    await expect(settingsSource(world.settingsFile).read()).rejects.toThrow(
      'tls.key: /nonexistent/k cannot be read: there is no such file; check the path',
    );
  });
});

it('neither log nor answers contain tokens, and each change has an audit line', async () => {
  const lines: { readonly message: string; readonly fields: LogFields | undefined }[] = [];
  const add = (message: string, fields?: LogFields): void => void lines.push({ message, fields });
  const log: Logger = {
    ...{ debug: add, info: add, warn: add },
    error: (message, error, fields) => add(message, { ...fields, error: String(error) }),
    ...{ with: () => log, named: () => log },
  };
  const gateway = await world.gateway({ log });
  const client = gateway.client();
  const { id } = await client.create({ labels: ['debian'] }, { key: 'k' });
  await client.create({ labels: ['debian'] }, { key: 'k' });
  await client.ready(id);
  await client.renew(id);
  await client.release(id, { outcome: 'failure' });
  await gateway.fetch('/v1/labels', { token: 'wrong-secret-token' });
  const audit = lines.filter(({ message }) => message === 'Lease changed');
  expect(audit.map(({ fields }) => [fields?.['action'], fields?.['subject'], fields?.['remote']])).toEqual(
    ['created', 'created again', 'renewed', 'released'].map((action) => [action, 'acme', '127.0.0.1']),
  );
  const all =
    JSON.stringify(lines) +
    JSON.stringify([...world.server.dump()].map(([, { data }]) => Buffer.from(data).toString()));
  for (const secret of [...Object.values(TOKENS), 'wrong-secret-token']) expect(all).not.toContain(secret);
});

describe('tokens of an issuer', () => {
  let issuer: Server;
  let url = '';
  let key: CryptoKey;
  let answers = 0;
  /** Path of the keys that the issuer publishes, and the keys there. */
  let keysPath = '';
  let keys: object[] = [];

  beforeEach(async () => {
    keysPath = '/keys';
    const pair = await generateKeyPair('ES256', { extractable: true });
    key = pair.privateKey;
    keys = [{ ...(await exportJWK(pair.publicKey)), kid: 'one', alg: 'ES256' }];
    issuer = createServer((request, response) => {
      answers++;
      const body =
        request.url === '/.well-known/openid-configuration' ? { issuer: url, jwks_uri: `${url}${keysPath}` } : { keys };
      if (!['/.well-known/openid-configuration', '/keys'].includes(request.url ?? '')) response.statusCode = 404;
      response.setHeader('content-type', 'application/json').end(JSON.stringify(body));
    });
    issuer.listen(0, '127.0.0.1');
    await once(issuer, 'listening');
    url = `http://127.0.0.1:${(issuer.address() as AddressInfo).port}`;
    await world.configure(`issuers:
  - name: gitlab
    issuer: ${url}
    audience: nodepool
    grants:
      - name: acme-jobs
        claims: {namespace_path: "acme/*", ref_protected: "true"}
        tenant: acme
        labels: [debian]
        max-nodes: 2
`);
  });
  afterEach(async () => {
    issuer.closeAllConnections();
    issuer.close();
    await once(issuer, 'close');
  });

  interface Change {
    readonly claims?: Record<string, unknown>;
    readonly issuer?: string;
    readonly audience?: string;
    readonly expires?: string;
    readonly key?: CryptoKey | Uint8Array;
    readonly algorithm?: string;
    readonly kid?: string;
  }

  function sign(change: Change = {}): Promise<string> {
    const claims = { namespace_path: 'acme/tools', ref_protected: 'true', ...change.claims };
    return new SignJWT(claims)
      .setProtectedHeader({ alg: change.algorithm ?? 'ES256', kid: change.kid ?? 'one' })
      .setSubject('project_path:acme/tools:ref:main')
      .setIssuer(change.issuer ?? url)
      .setAudience(change.audience ?? 'nodepool')
      .setIssuedAt()
      .setExpirationTime(change.expires ?? '5m')
      .sign(change.key ?? key);
  }

  it('have the rights of the grant that their claims fit', async () => {
    const gateway = await world.gateway();
    const client = gateway.client(await sign());
    const lease = await client.create({ labels: ['debian'] });
    expect(lease).toMatchObject({ tenant: 'acme', created_by: 'gitlab:project_path:acme/tools:ref:main' });
    expect(await codeOf(client.create({ labels: ['windows'] }))).toBe('forbidden');
    expect(await codeOf(client.create({ labels: ['debian'], count: 2 }))).toBe('quota');
    expect((await gateway.client().get(lease.id)).id).toBe(lease.id);
    expect(answers).toBeLessThan(4);
  });

  it('are refused with a wrong issuer, audience, time, claim, key or algorithm', async () => {
    const gateway = await world.gateway();
    const foreign = await generateKeyPair('ES256');
    const [header = '', payload = ''] = (await sign()).split('.');
    const unsigned = Buffer.from(JSON.stringify({ alg: 'none' })).toString('base64url');
    const tokens = [
      await sign({ issuer: `${url}/` }),
      await sign({ audience: 'other' }),
      await sign({ expires: '-10m' }),
      await sign({ claims: { namespace_path: 'evil/acme/tools' } }),
      await sign({ claims: { ref_protected: 'false' } }),
      await sign({ claims: { ref_protected: undefined } }),
      await sign({ key: foreign.privateKey }),
      await sign({ key: Buffer.from(JSON.stringify('shared secret of 32 bytes or more')), algorithm: 'HS256' }),
      `${unsigned}.${payload}.`,
      `${unsigned}.${payload}.AAAA`,
      `${header}.${payload}.AAAA`,
      'a.b.c',
    ];
    for (const token of tokens) {
      expect([token.length, (await gateway.fetch('/v1/labels', { token })).status]).toEqual([token.length, 401]);
    }
    expect((await gateway.fetch('/v1/labels', { token: await sign() })).status).toBe(200);
  });

  it('are checked with new keys after a rotation, and not with withdrawn ones', async () => {
    const gateway = await world.gateway();
    const statusOf = async (token: string): Promise<number> => (await gateway.fetch('/v1/labels', { token })).status;
    const old = await sign();
    expect(await statusOf(old)).toBe(200);
    const pair = await generateKeyPair('ES256', { extractable: true });
    keys = [{ ...(await exportJWK(pair.publicKey)), kid: 'two', alg: 'ES256' }];
    const renewed = await sign({ key: pair.privateKey, kid: 'two' });
    const real = Date.now.bind(Date);
    const clock = jest.spyOn(Date, 'now').mockImplementation(() => real() + 6000);
    try {
      expect(await statusOf(renewed)).toBe(200);
      expect(await statusOf(old)).toBe(401);
    } finally {
      clock.mockRestore();
    }
  });

  it('are checked again once the issuer has corrected the address of its keys', async () => {
    keysPath = '/nowhere';
    const gateway = await world.gateway();
    const token = await sign();
    expect((await gateway.fetch('/v1/labels', { token })).status).toBe(503);
    keysPath = '/keys';
    expect((await gateway.fetch('/v1/labels', { token })).status).toBe(200);
  });

  it('of one subject with the rights of two tenants do not share idempotency keys', async () => {
    await world.configure(`issuers:
  - name: gitlab
    issuer: ${url}
    audience: nodepool
    grants:
      - {name: acme-jobs, claims: {namespace_path: "acme/*"}, tenant: acme, labels: [debian]}
      - {name: other-jobs, claims: {namespace_path: "other/*"}, tenant: other, labels: [debian]}
`);
    const gateway = await world.gateway();
    const acme = gateway.client(await sign());
    const other = gateway.client(await sign({ claims: { namespace_path: 'other/tools' } }));
    const lease = await acme.create({ labels: ['debian'] }, { key: 'same' });
    const outcome = await other
      .create({ labels: ['debian'] }, { key: 'same' })
      .catch((error: unknown) => String(error));
    expect(JSON.stringify(outcome)).not.toContain(lease.id);
    for await (const seen of other.list()) expect(seen.id).not.toBe(lease.id);
    expect(await codeOf(other.get(lease.id))).toBe('not-found');
  });

  it('cannot be checked while the issuer is away, which is no refusal', async () => {
    const gateway = await world.gateway();
    const token = await sign();
    issuer.closeAllConnections();
    issuer.close();
    await once(issuer, 'close');
    const answer = await gateway.fetch('/v1/labels', { token });
    expect(answer.status).toBe(503);
    expect((await gateway.fetch('/v1/labels')).status).toBe(200);
    issuer.listen(Number(new URL(url).port), '127.0.0.1');
    await once(issuer, 'listening');
    expect((await gateway.fetch('/v1/labels', { token })).status).toBe(200);
  });
});
