/** Image uploads through a bucket, and the cleanup of failed ones. */

import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import {
  createWriteStream,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { CHUNK_BYTES } from '../src/client/storage.js';
import { driver } from '../src/index.js';
import { packDisk, tarHeader } from '../src/tar-gz.js';
import { failureOf } from '@nodepool/driver-kit';
import {
  DISK_GRAIN_BYTES,
  openCloud,
  pathsOf,
  repeat,
  section,
  timeWithoutDeadlines,
  type OpenCloud,
} from './cloud.js';
import { TestProvider } from './provider.js';

/** Larger than one chunk, even when compressed. */
const DISK_BYTES = CHUNK_BYTES + 100;
const CLOUD_DISK_BYTES = 9 * DISK_GRAIN_BYTES;
const GIB = 2 ** 30;
/** The prototype of all kinds of byte arrays. */
const BYTES = Object.getPrototypeOf(Object.getPrototypeOf(Buffer.prototype)) as Uint8Array;

const DISK_IMAGE = { name: 'debian', architecture: 'arm64', 'guest-os-features': ['UEFI_COMPATIBLE', 'GVNIC'] };

let folder: string;
let file: string;
let open: OpenCloud;
let provider: TestProvider;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'gce-images-'));
  file = join(folder, 'disk.img');
  writeFileSync(file, randomBytes(DISK_BYTES));
  open = await openCloud({}, timeWithoutDeadlines());
  provider = await TestProvider.started(open, section({ diskimages: [DISK_IMAGE] }));
});

afterEach(async () => {
  await provider.stop();
  await open.cloud.close();
  rmSync(folder, { recursive: true });
});

function sha256(): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex');
}

/** Returns the checksum of the disk in the cloud: the file and zeros. */
function cloudSha256(): string {
  const zeros = Buffer.alloc(CLOUD_DISK_BYTES - DISK_BYTES);
  return createHash('sha256').update(readFileSync(file)).update(zeros).digest('hex');
}

/** Returns the paths of the files that this process has open. */
function openFiles(): readonly string[] {
  return readdirSync('/proc/self/fd').flatMap((descriptor) => {
    try {
      return [readlinkSync(`/proc/self/fd/${descriptor}`)];
    } catch {
      // The descriptor of the folder itself is closed by now.
      return [];
    }
  });
}

describe('an upload', () => {
  it('creates an image with the disk, its tags and its properties, and leaves nothing in the bucket', async () => {
    const externalId = await provider.upload(file, { sha256: sha256(), metadata: { team: 'ci' } });
    expect(externalId).toMatch(/^debian-1-[0-9a-f]{16}$/);
    const { inspect } = open.cloud;
    expect(inspect.images()).toMatchObject([
      {
        name: externalId,
        sha256: cloudSha256(),
        diskBytes: CLOUD_DISK_BYTES,
        labels: { team: 'ci', nodepool_upload_id: '0000000001' },
      },
    ]);
    expect(inspect.images()[0]?.body).toMatchObject({
      architecture: 'ARM64',
      guestOsFeatures: [{ type: 'UEFI_COMPATIBLE' }, { type: 'GVNIC' }],
    });
    expect(inspect.objects()).toEqual([]);
    expect(inspect.openUploads()).toBe(0);
  });

  it('has its properties as labels: valid values unchanged, others escaped', async () => {
    await provider.upload(file, { metadata: { team: 'ci_images', release: '12.5' } });
    expect(open.cloud.inspect.images()[0]?.labels).toMatchObject({ team: 'ci_images', release: '12_2e5' });
  });

  it('creates an image of whole GiB, the only sizes that Compute Engine accepts', async () => {
    open.cloud.configure({ diskGrainBytes: GIB });
    const real = await new TestProvider(open, section({ diskimages: [DISK_IMAGE] }), driver).start();
    await real.upload(file);
    await real.stop();
    expect(open.cloud.inspect.images()).toMatchObject([{ diskBytes: GIB }]);
  });

  it('gets the same operation if its insertion arrives twice', async () => {
    const paths = pathsOf(open.cloud, 'images.insert');
    await provider.upload(file, { sha256: sha256() });
    expect(await repeat(open.cloud, paths[0], {})).toMatchObject({ status: 200, answer: { operationType: 'insert' } });
    expect(open.cloud.inspect.images()).toHaveLength(1);
  });

  it.each([
    ['refused', { kind: 'status', status: 503 }],
    ['cut off before its effect', { kind: 'cut', when: 'before' }],
    ['cut off after its effect', { kind: 'cut', when: 'after' }],
    ['throttled', { kind: 'status', status: 429 }],
  ] as const)('continues at the same position after a piece was %s', async (_what, fault) => {
    open.cloud.faults.add({ on: 'objects.upload', after: 1, fault });
    await provider.upload(file, { sha256: sha256() });
    expect(open.cloud.inspect.images()).toMatchObject([{ sha256: cloudSha256() }]);
  });

  it.each([
    ['refused', { kind: 'status', status: 503 }],
    ['cut off before its effect', { kind: 'cut', when: 'before' }],
    ['cut off after its effect', { kind: 'cut', when: 'after' }],
    ['throttled', { kind: 'status', status: 429 }],
  ] as const)('is not lost if the creation of its image was %s', async (_what, fault) => {
    open.cloud.faults.add({ on: 'images.insert', fault });
    await provider.upload(file, { sha256: sha256() });
    expect(open.cloud.inspect.images()).toMatchObject([{ sha256: cloudSha256() }]);
    expect(open.cloud.inspect.objects()).toEqual([]);
  });

  it('fails and leaves nothing behind if the bucket always refuses it', async () => {
    open.cloud.faults.add({ on: 'objects.upload', times: Infinity, fault: { kind: 'status', status: 500 } });
    expect((await failureOf(provider.upload(file))).code).toBe('transient');
    expect(open.cloud.inspect.objects()).toEqual([]);
    expect(open.cloud.inspect.images()).toEqual([]);
  });

  it('that fails does not block the program: no library visits each byte of a piece', async () => {
    open.cloud.faults.add({ on: 'objects.upload', times: Infinity, fault: { kind: 'status', status: 500 } });
    let visited = 0;
    const spied = jest.spyOn(BYTES, 'forEach').mockImplementation(function (this: Uint8Array) {
      visited += this.length;
    });
    const error = await failureOf(provider.upload(file)).finally(() => spied.mockRestore());
    expect(visited).toBeLessThan(CHUNK_BYTES);
    expect(inspect(error, { depth: Infinity })).not.toMatch(/bearer/i);
  });

  it('fails and leaves nothing behind if its image cannot be created', async () => {
    const fault = { kind: 'operation-error', code: 'QUOTA_EXCEEDED', message: "Quota 'IMAGES' exceeded." } as const;
    open.cloud.faults.add({ on: 'images.insert', fault });
    expect((await failureOf(provider.upload(file))).code).toBe('quota');
    expect(open.cloud.inspect.objects()).toEqual([]);
  });

  it('creates no image if its file differs from the build', async () => {
    const error = await failureOf(provider.upload(file, { sha256: 'f'.repeat(64) }));
    expect(error.message).toContain('differs from the build: its SHA-256 is');
    expect(open.cloud.inspect.images()).toEqual([]);
    expect(open.cloud.inspect.objects()).toEqual([]);
  });

  it('creates no image if the bucket has stored other data', async () => {
    open.cloud.configure({ damagesObjects: true });
    const error = await failureOf(provider.upload(file));
    expect(error).toMatchObject({ code: 'transient', message: expect.stringContaining('was damaged') });
    expect(open.cloud.inspect.images()).toEqual([]);
    expect(open.cloud.inspect.objects()).toEqual([]);
  });

  it('leaves no file open if the bucket refuses its beginning', async () => {
    open.cloud.faults.add({ on: 'objects.insert', fault: { kind: 'status', status: 403 } });
    expect((await failureOf(provider.upload(file))).code).toBe('auth');
    expect(openFiles()).not.toContain(file);
  });

  it('fails, and does not end the process, if its file cannot be read while the upload begins', async () => {
    open.cloud.faults.add({ on: 'objects.insert', fault: { kind: 'status', status: 503 } });
    const unreadable = join(folder, 'folder');
    mkdirSync(unreadable);
    await expect(provider.upload(unreadable)).rejects.toThrow('EISDIR');
    expect(open.cloud.inspect.openUploads()).toBe(0);
  });

  it('leaves a tagged file for cleanup if it cannot delete it', async () => {
    open.cloud.faults.add({ on: 'objects.delete', fault: { kind: 'status', status: 500 } });
    await provider.upload(file);
    expect(open.cloud.inspect.objects()).toHaveLength(1);
    const offered = await provider.cleanUpRound(({ kind }) => kind === 'object');
    expect(offered).toMatchObject([
      { kind: 'image', tags: { nodepool_upload_id: '0000000001', nodepool_provider_name: 'test' } },
      { kind: 'object', tags: { nodepool_upload_id: '0000000001', nodepool_provider_name: 'test' } },
    ]);
    expect(open.cloud.inspect.objects()).toEqual([]);
    expect(open.cloud.inspect.images()).toHaveLength(1);
  });

  it('leaves files for cleanup that a list of several pages contains', async () => {
    open.cloud.configure({ pageSize: 2 });
    open.cloud.faults.add({ on: 'objects.delete', fault: { kind: 'status', status: 500 }, times: 3 });
    writeFileSync(file, randomBytes(100));
    const ids = ['0000000001', '0000000002', '0000000003'];
    for (const id of ids) await provider.upload(file, { tags: { ...provider.imageTags, nodepool_upload_id: id } });
    const offered = await provider.cleanUpRound(({ kind }) => kind === 'object');
    const objects = offered.filter(({ kind }) => kind === 'object');
    expect(objects.map(({ tags }) => tags.nodepool_upload_id)).toEqual(ids);
    expect(open.cloud.inspect.objects()).toEqual([]);
  });
});

/** Answers of a proxy with status 200: a page, JSON, and the latter in the form of a completed operation. */
const PROXIES = [{}, { json: { ok: true } }, { json: { status: 'DONE', name: 'operation-1' } }];

describe('an answer of a proxy', () => {
  it.each(PROXIES)('does not count as the deletion of an object: %j', async (answer) => {
    const fault = { kind: 'proxy', status: 200, ...answer } as const;
    open.cloud.faults.add({ on: 'objects.delete', times: 2, fault });
    await provider.upload(file);
    expect(open.cloud.inspect.objects()).toHaveLength(1);
    await expect(provider.cleanUpRound(({ kind }) => kind === 'object')).rejects.toMatchObject({
      code: 'transient',
      outcome: 'unknown',
    });
    await provider.cleanUpRound(({ kind }) => kind === 'object');
    expect(open.cloud.inspect.objects()).toEqual([]);
  });

  it.each(PROXIES)('does not count as the deletion of an image: %j', async (answer) => {
    const externalId = await provider.upload(file);
    const remove = (): Promise<void> =>
      provider.end(provider.provider.images?.deleteImage(externalId, provider.call()) ?? Promise.resolve());
    open.cloud.faults.add({ on: 'images.delete', fault: { kind: 'proxy', status: 200, ...answer } });
    expect(await failureOf(remove())).toMatchObject({ code: 'transient', outcome: 'unknown' });
    expect(open.cloud.inspect.images()).toHaveLength(1);
    open.cloud.faults.add({ on: 'globalOperations.wait', fault: { kind: 'proxy', status: 200, ...answer } });
    await remove();
    expect(open.cloud.inspect.images()).toEqual([]);
  });

  it.each(PROXIES)('does not count as a completed upload: %j', async (answer) => {
    open.cloud.faults.add({ on: 'objects.upload', after: 1, fault: { kind: 'proxy', status: 200, ...answer } });
    expect(await failureOf(provider.upload(file))).toMatchObject({ code: 'transient', outcome: 'unknown' });
    expect(open.cloud.calls.count('images.insert')).toBe(0);
    expect(open.cloud.inspect.openUploads()).toBe(0);
  });
});

describe('a packed disk', () => {
  const pack = async (target: string, size: number): Promise<void> => {
    const { signal } = new AbortController();
    await pipeline(
      packDisk({ file, size, grainBytes: DISK_GRAIN_BYTES, signal, onPiece: () => undefined }),
      createWriteStream(target),
    );
  };

  it('can be unpacked by GNU tar without differences, and ends with zeros', async () => {
    const target = join(folder, 'packed.tar.gz');
    await pack(target, DISK_BYTES);
    expect(execFileSync('tar', ['-tzf', target]).toString()).toBe('disk.raw\n');
    truncateSync(file, CLOUD_DISK_BYTES);
    execFileSync('sh', ['-c', 'tar -xzOf "$0" | cmp - "$1"', target, file]);
  });

  it('encodes sizes of 8 GiB and more in the format of GNU tar', () => {
    const size = 9 * 2 ** 30;
    const archive = join(folder, 'large.tar');
    writeFileSync(archive, tarHeader('disk.raw', size));
    truncateSync(archive, 512 + size + 1024);
    expect(execFileSync('tar', ['-tvf', archive]).toString()).toContain(` ${size} `);
  });

  it('is refused if the file has become shorter', async () => {
    await expect(pack(join(folder, 'packed.tar.gz'), DISK_BYTES + 1)).rejects.toThrow(
      `has ${DISK_BYTES} bytes, and had ${DISK_BYTES + 1} when its upload began`,
    );
  });
});
