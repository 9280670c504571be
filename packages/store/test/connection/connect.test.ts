import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { makeCertificates } from '@nodepool/dev-zookeeper';
import { silentLogger, systemClock } from '@nodepool/core';
import type { ZooKeeperConfig } from '@nodepool/config';
import { connectToZooKeeper, TlsFilesError, ZooKeeperUnreachableError } from '../../src/connection/connect.js';

const OPTIONS = { clock: systemClock, log: silentLogger };

function config(servers: readonly string[], tls?: ZooKeeperConfig['tls']): ZooKeeperConfig {
  return { servers, chroot: '', tls, sessionTimeoutMs: 1000 };
}

/** Returns the address of a port without a listener. */
async function deadAddress(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `127.0.0.1:${port}`;
}

describe('connecting to ZooKeeper', () => {
  it('stops at the deadline and reports the unreachable servers, the reason and possible remedies', async () => {
    const address = await deadAddress();
    const connecting = connectToZooKeeper(config([address]), { ...OPTIONS, timeoutMs: 100 });
    await expect(connecting).rejects.toThrow(ZooKeeperUnreachableError);
    await expect(connecting).rejects.toThrow(
      new RegExp(`ZooKeeper \\(${address}\\) did not answer within 0.1 s: .*ECONNREFUSED.*check zookeeper-servers`),
    );
  });

  it('rejects with the reason of its signal', async () => {
    const reason = new Error('enough');
    const connecting = connectToZooKeeper(config([await deadAddress()]), {
      ...OPTIONS,
      signal: AbortSignal.abort(reason),
    });
    await expect(connecting).rejects.toBe(reason);
  });
});

describe('the TLS files', () => {
  let folder: string;
  let files: NonNullable<ZooKeeperConfig['tls']>;
  let others: NonNullable<ZooKeeperConfig['tls']>;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'nodepool-tls-'));
    const make = async (name: string): Promise<typeof files> => {
      const made = await makeCertificates(join(folder, name));
      return { certFile: made.clientCert, keyFile: made.clientKey, caFile: made.ca, verifyHostname: true };
    };
    [files, others] = await Promise.all([make('a'), make('b')]);
  });
  afterAll(() => rm(folder, { recursive: true }));

  const connecting = (tls: ZooKeeperConfig['tls']): Promise<unknown> =>
    connectToZooKeeper(config(['127.0.0.1:1'], tls), { ...OPTIONS, timeoutMs: 50 });

  it('must exist', async () => {
    await expect(connecting({ ...files, keyFile: '/nonexistent/key.pem' })).rejects.toThrow(
      /zookeeper-tls\.key: cannot read \/nonexistent\/key\.pem: there is no such file/,
    );
  });

  it('must be PEM', async () => {
    const file = join(folder, 'not-pem');
    await writeFile(file, 'hello');
    await expect(connecting({ ...files, caFile: file })).rejects.toThrow(
      /zookeeper-tls\.ca: .*not-pem is not a PEM file/,
    );
  });

  it('must match each other', async () => {
    const mixed = connecting({ ...files, keyFile: others.keyFile });
    await expect(mixed).rejects.toThrow(TlsFilesError);
    await expect(mixed).rejects.toThrow(/cannot be used together/);
  });

  it('are accepted if valid', async () => {
    await expect(connecting(files)).rejects.toThrow(ZooKeeperUnreachableError);
  });
});
