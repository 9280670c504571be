/** The driver on the simulated cloud and, with `pnpm test:openstack`, on the real one. */

import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExternalId, JsonObject, QuotaInformation } from '@nodepool/core';
import { isRealOpenStackUnderTest, openStackUnderTest, type OpenStackUnderTest } from '@nodepool/simulated-openstack';
import { callOn, failureOf, realTime, simulatedTime } from '@nodepool/driver-kit';
import { section, environmentOf } from './cloud.js';
import { TestProvider } from './provider.js';

jest.setTimeout(isRealOpenStackUnderTest() ? 400_000 : 60_000);

const time = isRealOpenStackUnderTest() ? realTime() : simulatedTime();
let cloud: OpenStackUnderTest;

beforeAll(async () => {
  cloud = await openStackUnderTest({ clock: time.clock });
});

afterAll(async () => {
  await cloud.close();
});

/** Runs work with a provider, then stops the provider. */
async function withProvider(
  parts: { readonly change?: JsonObject; readonly label?: JsonObject; readonly pool?: JsonObject },
  work: (test: TestProvider) => Promise<void>,
): Promise<void> {
  const { change, label, pool } = parts;
  const test = await TestProvider.started({ time, environment: environmentOf(cloud) }, section(change, label, pool));
  try {
    await work(test);
  } finally {
    await test.stop();
  }
  expect(test.failures).toEqual([]);
}

/** Returns the servers, floating IPs and volumes of this driver that the cloud lists. */
async function leftBy(test: TestProvider): Promise<readonly unknown[]> {
  return (await test.cleanUpRound()).filter(({ kind }) => kind !== 'image');
}

describe('the driver', () => {
  it('launches a node with a floating IP, lists it, and deletes it completely', async () => {
    await withProvider({ pool: { 'auto-floating-ip': true } }, async (test) => {
      const made = await test.launch();
      expect(made).toMatchObject({ region: 'RegionOne', az: 'nova', resources: { instances: 1, cores: 1, ram: 512 } });
      expect(made.interfaceIp).toBe(made.publicIpv4);
      const again = await test.launch('0000000001', { externalId: made.externalId, saved: { state: 'booting' } });
      expect(again).toMatchObject({ externalId: made.externalId, publicIpv4: made.publicIpv4 });
      expect((await leftBy(test)).length).toBe(2);
      await test.cleanUp(made.externalId);
      await test.cleanUp(made.externalId);
      expect(await leftBy(test)).toEqual([]);
    });
  });

  it('launches a node that boots from a volume, and deletes both', async () => {
    await withProvider({ label: { 'boot-from-volume': true, 'volume-size': 1 } }, async (test) => {
      const made = await test.launch();
      expect(made.resources).toMatchObject({ volumes: 1 });
      await test.cleanUp(made.externalId);
      expect(await leftBy(test)).toEqual([]);
    });
  });

  it('uses application credentials', async () => {
    await withProvider({ change: { cloud: 'real-appcred' } }, async (test) => {
      expect((await limitsOf(test))?.get('instances')).toBe(1000);
    });
  });

  it('reports an exceeded quota as not applied', async () => {
    await withProvider({ change: { cloud: 'limited' } }, async (test) => {
      expect((await limitsOf(test))?.toResources()).toEqual({ instances: 3, cores: 3, ram: 4096 });
      const ids = ['0000000001', '0000000002', '0000000003'];
      const made = await test.end(Promise.all(ids.map((id) => test.begin(id))));
      expect(await test.failedLaunch('0000000004')).toMatchObject({ code: 'quota', outcome: 'not-applied' });
      await test.end(Promise.all(made.map(({ externalId }, index) => test.beginCleanUp(externalId, ids[index]))));
      expect(await leftBy(test)).toEqual([]);
    });
  });

  it.each<[string, JsonObject, string]>([
    ['no host is large enough', { 'flavor-name': 'm1.nohost' }, 'capacity'],
    ['the hypervisor fails', { 'instance-properties': { ostack_fail: 'spawn' } }, 'instance-failed'],
    ['the key pair is unknown', { 'key-name': 'nobodys' }, 'configuration'],
  ])('reports why a launch failed if %s, and cleans up', async (_case, label, code) => {
    await withProvider({ label }, async (test) => {
      expect(await test.failedLaunch('0000000001', { tags: test.tagsOf('0000000001', code) })).toMatchObject({ code });
      await test.cleanUp(null, '0000000001', { launchAttempt: code });
      expect(await leftBy(test)).toEqual([]);
    });
  });

  it('repeats the deletion of a server that entered ERROR', async () => {
    await withProvider({ label: { 'instance-properties': { ostack_fail: 'delete' } } }, async (test) => {
      const made = await test.launch();
      await test.cleanUp(made.externalId);
      expect(test.count('server', 'DELETE')).toBeGreaterThan(1);
      expect(await leftBy(test)).toEqual([]);
    });
  });

  it('uploads, verifies and deletes an image', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'image-'));
    const file = join(folder, 'image.raw');
    const data = Buffer.alloc(3_000_000, 'data');
    writeFileSync(file, data);
    await withProvider({}, async (test) => {
      const md5 = createHash('md5').update(data).digest('hex');
      const externalId = await test.upload(file, { md5, metadata: { hw_disk_bus: 'scsi', min_disk: '1' } });
      expect(await imagesOf(test)).toEqual([externalId]);
      const other = { tags: { ...test.imageTags, nodepool_build_id: 'b2' } };
      const damaged = failureOf(test.upload(file, { md5: '0'.repeat(32), ...other }));
      expect((await damaged).message).toContain('differs from the build');
      await deleteImage(test, externalId);
      await deleteImage(test, externalId);
      expect(await imagesOf(test)).toEqual([]);
    });
    rmSync(folder, { recursive: true });
  });
});

async function limitsOf({ provider }: TestProvider): Promise<QuotaInformation | undefined> {
  return provider.getQuotaLimits?.(callOn(time.clock));
}

async function imagesOf(test: TestProvider): Promise<readonly ExternalId[]> {
  const listed = (await test.provider.images?.listImages(callOn(time.clock))) ?? [];
  return listed.map(({ externalId }) => externalId);
}

async function deleteImage(test: TestProvider, externalId: ExternalId): Promise<void> {
  await test.provider.images?.deleteImage(externalId, callOn(time.clock));
}
