/** Credentials that Google Cloud refuses, and their replacement while the provider runs. */

import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { failureOf, type TestTime } from '@nodepool/driver-kit';
import { openCloud, section, timeWithoutDeadlines, type OpenCloud } from './cloud.js';
import { endAfterTest, TestProvider } from './provider.js';

/** The two kinds of files: the library signs tokens with the key, or gets them with the login. */
type Kind = 'credentialsFile' | 'loginFile';

async function openAs(kind: Kind, time?: TestTime): Promise<OpenCloud & { readonly provider: TestProvider }> {
  const open = await openCloud({}, time);
  const used = section({ 'credentials-file': open.cloud[kind], diskimages: [{ name: 'debian' }] });
  const provider = await TestProvider.started(open, used);
  endAfterTest(async () => {
    await provider.stop();
    await open.cloud.close();
  });
  return { ...open, provider };
}

function list(provider: TestProvider): Promise<readonly unknown[]> {
  return provider.end(provider.provider.listNodes(provider.call()));
}

describe('a token that is refused before its expiry', () => {
  it('is replaced, and the calls are repeated once', async () => {
    const { cloud, provider } = await openAs('loginFile');
    cloud.revokeTokens();
    const ids = ['0000000001', '0000000002', '0000000003'];
    await provider.end(Promise.all(ids.map((id) => provider.begin(id))));
    expect(cloud.inspect.instances()).toHaveLength(ids.length);
  });

  it('does not fail an upload', async () => {
    const { cloud, provider } = await openAs('loginFile', timeWithoutDeadlines());
    const folder = await mkdtemp(join(tmpdir(), 'gce-credentials-'));
    endAfterTest(() => rm(folder, { recursive: true }));
    const file = join(folder, 'disk.img');
    await writeFile(file, randomBytes(1000));
    cloud.revokeTokens();
    cloud.faults.add({ on: 'objects.upload', fault: { kind: 'status', status: 401, reason: 'authError' } });
    await provider.upload(file);
    expect(cloud.inspect.images()).toHaveLength(1);
  });
});

describe('credentials', () => {
  it.each<[string, Kind]>([
    ['a key', 'credentialsFile'],
    ['a login', 'loginFile'],
  ])('that are revoked fail calls until the file contains others: %s', async (_what, kind) => {
    const { cloud, provider } = await openAs(kind);
    cloud.revokeCredentials();
    const error = await failureOf(list(provider));
    expect(error).toMatchObject({ code: 'auth', outcome: 'not-applied' });
    expect(error.message).toContain(
      `; replace the credentials in ${cloud[kind]}, which the driver reads again without a restart`,
    );
    await writeFile(cloud[kind], '{"type": "service_acc');
    expect(await failureOf(list(provider))).toMatchObject({ code: 'auth', outcome: 'not-applied' });
    await cloud.writeCredentials();
    expect(await list(provider)).toEqual([]);
  });

  it('are tried twice per call if they are refused', async () => {
    const { cloud, provider } = await openAs('credentialsFile');
    cloud.revokeCredentials();
    const error = await failureOf(provider.launch());
    expect(error).toMatchObject({ code: 'auth', outcome: 'not-applied' });
    expect(inspect(error, { depth: Infinity, showHidden: true })).not.toContain('PRIVATE KEY');
    expect(cloud.calls.count('instances.insert')).toBe(2);
  });

  it('are not read again if they lack a permission', async () => {
    const { cloud, provider } = await openAs('loginFile');
    const tokens = cloud.calls.count('token');
    cloud.faults.add({ on: 'instances.insert', fault: { kind: 'status', status: 403, reason: 'forbidden' } });
    expect(await failureOf(provider.launch())).toMatchObject({ code: 'auth' });
    expect(cloud.calls.count('instances.insert')).toBe(1);
    expect(cloud.calls.count('token')).toBe(tokens);
  });
});
