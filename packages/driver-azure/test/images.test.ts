/** Disk images: the check of the file, the upload to a disk, the image, and its deletion. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { createHash } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import type { ExternalId } from '@nodepool/core';
import { callOn, failureOf, INSTALLATION } from '@nodepool/driver-kit';
import { openCloud, section, type OpenCloud } from './cloud.js';
import { TestProvider } from './provider.js';
import { vhd, writeVhd } from './vhd-file.js';

const IMAGES = 'Microsoft.Compute/images';
const DISKS = 'Microsoft.Compute/disks';

const unknownOperation = { kind: 'status', status: 404, code: 'OperationNotFound' } as const;

let open: OpenCloud;
let test: TestProvider;
let folder: string;
let file: string;

beforeEach(async () => {
  ({ folder, file } = await writeVhd());
  open = await openCloud();
  test = await TestProvider.started(open, section({ diskimages: [{ name: 'debian' }] }));
});

afterEach(async () => {
  await test.stop();
  await open.cloud.close();
  await rm(folder, { recursive: true, force: true });
});

const names = (type: typeof IMAGES | typeof DISKS): readonly string[] => open.cloud.list(type).map(({ name }) => name);

function text(externalId: ExternalId): string {
  if (typeof externalId === 'string') return externalId;
  throw new TypeError('ids of Azure are texts');
}

describe('an upload', () => {
  it('creates an image with the same bytes and with tags, and leaves no disk', async () => {
    const externalId = await test.upload(file, { metadata: { team: 'ci' } });
    expect(open.cloud.disks.contentOf(text(externalId))?.equals(vhd())).toBe(true);
    expect(open.cloud.list(IMAGES).map(({ tags }) => tags)).toEqual([
      {
        team: 'ci',
        nodepool_installation: INSTALLATION,
        nodepool_provider_name: 'test',
        nodepool_image_name: 'debian',
        nodepool_build_id: 'b1',
        nodepool_upload_id: '0000000001',
        nodepool_image_format: 'vhd',
        nodepool_external_name: 'debian-1',
        nodepool_resource: `nodepool/${text(externalId)}`,
      },
    ]);
    expect(names(DISKS)).toEqual([]);
  });

  it('creates images of Generation 2 in all zones by default', async () => {
    await test.upload(file);
    const shown = open.cloud.list(IMAGES).map(({ properties }) => properties);
    expect(shown).toMatchObject([{ hyperVGeneration: 'V2', storageProfile: { zoneResilient: true } }]);
    const change = { name: 'debian', 'hyper-v-generation': 'V1', 'zone-resilient': false };
    const other = await TestProvider.started(open, section({ diskimages: [change] }));
    await other.upload(file, { externalName: 'debian-2' });
    await other.stop();
    const [, second] = open.cloud.list(IMAGES);
    expect(second?.properties).toMatchObject({ hyperVGeneration: 'V1', storageProfile: { zoneResilient: false } });
  });

  it('skips blocks of zeros, and reports its progress to the end', async () => {
    const told: number[] = [];
    await test.upload(file, { progress: (sent) => void told.push(sent) });
    // The second of the three blocks contains only zeros and is skipped; the last contains the footer.
    expect(open.cloud.calls.count('pages.put')).toBe(2);
    expect(told.at(-1)).toBe(vhd().length);
    expect(told).toEqual(told.toSorted((a, b) => a - b));
  });

  it('continues after storage errors without a restart', async () => {
    open.cloud.faults.add({ on: 'pages.put', times: 3, fault: { kind: 'status', status: 503, code: 'ServerBusy' } });
    open.cloud.faults.add({ on: 'pages.put', after: 1, fault: { kind: 'cut', when: 'after' } });
    open.cloud.faults.add({ on: 'pages.put', after: 4, fault: { kind: 'proxy', status: 200 } });
    const externalId = await test.upload(file);
    expect(open.cloud.disks.contentOf(text(externalId))?.equals(vhd())).toBe(true);
    expect(open.cloud.calls.count('disks.put')).toBe(1);
  });

  it('continues if Azure does not know one of its operations', async () => {
    open.cloud.faults.add({ on: 'operations.get', times: 1, fault: unknownOperation });
    open.cloud.faults.add({ on: 'operations.get', after: 3, times: 1, fault: unknownOperation });
    const externalId = await test.upload(file);
    expect(open.cloud.disks.contentOf(text(externalId))?.equals(vhd())).toBe(true);
    expect([...names(IMAGES), ...names(DISKS)]).toEqual([externalId]);
  });

  it('leaves nothing behind if it fails', async () => {
    open.cloud.faults.add({
      on: 'pages.put',
      times: Infinity,
      fault: { kind: 'status', status: 403, code: 'AuthenticationFailed' },
    });
    expect(await failureOf(test.upload(file))).toMatchObject({ code: 'auth' });
    expect([...names(IMAGES), ...names(DISKS)]).toEqual([]);
  });

  it('creates no image if the file differs from the build', async () => {
    const md5 = createHash('md5').update('another').digest('hex');
    await expect(test.upload(file, { md5 })).rejects.toThrow('differs from the build');
    expect([...names(IMAGES), ...names(DISKS)]).toEqual([]);
  });

  it.each([
    ['a file without a footer', { cookie: 'nothing!' }, 'no VHD footer'],
    ['a dynamic disk', { type: 3 }, 'dynamic disk'],
    ['a size that is not a whole number of MiB', { bytes: 2 ** 20 + 512 }, 'not a whole number of MiB'],
    ['a truncated disk', { recordedBytes: 10 * 2 ** 20 }, 'its footer says 10485760'],
  ])('refuses %s before it creates a disk', async (_what, options, reason) => {
    await writeFile(file, vhd(options));
    const failure = await failureOf(test.upload(file));
    expect(failure.code).toBe('configuration');
    expect(failure.message).toContain(reason);
    expect(open.cloud.calls.count('disks.put')).toBe(0);
  });

  it('refuses a footer with a wrong checksum', async () => {
    const damaged = vhd();
    damaged.writeUInt8(1, damaged.length - 1);
    await writeFile(file, damaged);
    await expect(test.upload(file)).rejects.toThrow('checksum of its footer');
  });
});

describe('an upload that hangs', () => {
  it('ends at its deadline, and leaves nothing behind', async () => {
    open.cloud.faults.add({ on: 'pages.put', fault: { kind: 'hang', when: 'before' } });
    const deadline = open.time.clock.monotonic() + 10_000;
    const failure = await failureOf(test.upload(file, { deadline }));
    expect(failure.code).toBe('timeout');
    expect([...names(IMAGES), ...names(DISKS)]).toEqual([]);
  });
});

describe('a disk that a killed builder left', () => {
  it('is deleted by the cleanup, although it can still be written to', async () => {
    const forbidden = { kind: 'status', status: 403, code: 'AuthorizationFailed' } as const;
    for (const on of ['pages.put', 'disks.endGetAccess', 'disks.delete'])
      open.cloud.faults.add({ on, fault: forbidden });
    await failureOf(test.upload(file));
    expect(names(DISKS)).toHaveLength(1);

    const resources = await test.cleanUpRound(() => true);

    expect(resources.map(({ kind }) => kind)).toEqual(['disk']);
    expect(names(DISKS)).toEqual([]);
  });
});

describe('an image', () => {
  it('is listed if it has the tags of the provider, and can be deleted twice', async () => {
    open.cloud.disks.addImage('nodepool', 'of-others', 'centralus', {});
    const externalId = await test.upload(file);
    const images = test.provider.images;
    if (images === undefined) throw new Error('there are no images');
    const call = callOn(open.time.clock);
    expect(await test.end(images.listImages(call))).toMatchObject([{ externalId, ready: true }]);
    await test.end(images.deleteImage(externalId, call));
    await test.end(images.deleteImage(externalId, call));
    expect(names(IMAGES)).toEqual(['of-others']);
  });

  it('is not deleted just because Azure does not know the operation of its deletion', async () => {
    const externalId = await test.upload(file);
    open.cloud.configure({ workMs: 600_000 });
    open.cloud.faults.add({ on: 'operations.get', times: 6, fault: unknownOperation });
    const deletion = test.provider.images?.deleteImage(externalId, test.call());
    await test.end(Promise.resolve(deletion));
    expect(names(IMAGES)).toEqual([]);
  });
});

describe('an image in a former resource group of the provider', () => {
  const changedTo = async (group: string): Promise<TestProvider> =>
    TestProvider.started(open, section({ diskimages: [{ name: 'debian' }], 'resource-group': group }));
  const deleteBy = async (changed: TestProvider, externalId: ExternalId): Promise<void> => {
    await changed.end(Promise.resolve(changed.provider.images?.deleteImage(externalId, changed.call())));
    await changed.stop();
  };

  it('is deleted there', async () => {
    const externalId = await test.upload(file);
    await deleteBy(await changedTo('other'), externalId);
    expect(names(IMAGES)).toEqual([]);
  });

  it.each([
    ['installation', { nodepool_installation: 'another' }],
    ['provider', { nodepool_provider_name: 'another' }],
    ['build', { nodepool_build_id: 'b2' }],
    ['upload', { nodepool_upload_id: '0000000002' }],
  ])('remains if its tags name another %s', async (_what, change) => {
    const externalId = await test.upload(file);
    const [image] = open.cloud.list(IMAGES);
    if (image !== undefined) image.tags = { ...image.tags, ...change };
    await deleteBy(await changedTo('other'), externalId);
    expect(names(IMAGES)).toEqual([externalId]);
  });

  it('remains if it lacks a tag, or has another name', async () => {
    const externalId = text(await test.upload(file));
    const [image] = open.cloud.list(IMAGES);
    const { nodepool_image_format: _format, ...tags } = image?.tags ?? {};
    if (image !== undefined) open.cloud.remove(image);
    open.cloud.disks.addImage('nodepool', externalId, 'centralus', tags);
    open.cloud.disks.addImage('nodepool', `copy-of-${externalId}`, 'centralus', image?.tags ?? {});
    await deleteBy(await changedTo('other'), externalId);
    expect(names(IMAGES)).toEqual([externalId, `copy-of-${externalId}`]);
  });

  it('is not searched while the image is in the present group', async () => {
    const externalId = await test.upload(file);
    open.cloud.calls.reset();
    await test.end(Promise.resolve(test.provider.images?.deleteImage(externalId, test.call())));
    expect(open.cloud.calls.count('images.list')).toBe(0);
    expect(names(IMAGES)).toEqual([]);
  });

  it('is not given up while the subscription cannot be listed', async () => {
    const externalId = await test.upload(file);
    const changed = await changedTo('other');
    const forbidden = { kind: 'status', status: 403, code: 'AuthorizationFailed' } as const;
    open.cloud.faults.add({ on: 'images.list', fault: forbidden });
    expect(await failureOf(deleteBy(changed, externalId))).toMatchObject({ code: 'auth' });
    await deleteBy(changed, externalId);
    expect(names(IMAGES)).toEqual([]);
  });
});
