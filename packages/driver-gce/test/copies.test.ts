/** Resources that inherit our labels or metadata and belong to other people, and images that an operator retires. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import type { ExternalId } from '@nodepool/core';
import { openCloud, section, timeWithoutDeadlines, ZONE, type OpenCloud } from './cloud.js';
import { TestProvider } from './provider.js';

let folder: string;
let file: string;
let open: OpenCloud;
let provider: TestProvider;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'gce-copies-'));
  file = join(folder, 'disk.img');
  writeFileSync(file, 'data of a disk');
  open = await openCloud({}, timeWithoutDeadlines());
  provider = await TestProvider.started(open, section({ diskimages: [{ name: 'debian' }] }));
});

afterEach(async () => {
  await provider.stop();
  await open.cloud.close();
  rmSync(folder, { recursive: true });
});

function text(externalId: ExternalId): string {
  if (typeof externalId === 'string') return externalId;
  throw new TypeError('ids of Google Cloud are texts');
}

async function listedImages(): Promise<readonly ExternalId[]> {
  const { images } = provider.provider;
  const list = await provider.end(images!.listImages(provider.call()));
  return list.map(({ externalId }) => externalId);
}

it('an instance that a person creates from a machine image of a node survives the deletion of the node', async () => {
  const { externalId } = await provider.launch();
  const copy = `copy-of-${text(externalId)}`;
  open.cloud.copy.instance(ZONE, text(externalId), copy);
  const [original, other] = open.cloud.inspect.instances();
  expect(other?.labels).toEqual(original?.labels);
  await provider.cleanUp(null);
  expect(await provider.cleanUpRound(() => true)).toEqual([]);
  expect(open.cloud.inspect.instances().map(({ name }) => name)).toEqual([copy]);
  const listed = await provider.end(provider.provider.listNodes(provider.call()));
  expect(listed).toMatchObject([{ externalId: copy, tags: {}, resources: { instances: 1 } }]);
});

it('an image with the labels of an uploaded one survives, and is not listed', async () => {
  const externalId = await provider.upload(file);
  const copy = `copy-of-${text(externalId)}`.slice(0, 63);
  open.cloud.copy.image(text(externalId), copy);
  expect(await listedImages()).toEqual([externalId]);
  await provider.cleanUpRound(() => true);
  expect(open.cloud.inspect.images().map(({ name }) => name)).toEqual([copy]);
});

it('a copy of the file of an image survives; the file does not', async () => {
  open.cloud.faults.add({ on: 'objects.delete', fault: { kind: 'status', status: 500 } });
  await provider.upload(file);
  const [object] = open.cloud.inspect.objects();
  open.cloud.copy.object(object?.name ?? '', 'nodepool/copy.tar.gz');
  await provider.cleanUpRound(({ kind }) => kind === 'object');
  expect(open.cloud.inspect.objects().map(({ name }) => name)).toEqual(['nodepool/copy.tar.gz']);
});

it.each(['DEPRECATED', 'OBSOLETE', 'DELETED'])(
  'an image that an operator marks as %s remains listed',
  async (state) => {
    const externalId = await provider.upload(file);
    open.cloud.deprecateImage(text(externalId), state);
    expect(await listedImages()).toEqual([externalId]);
  },
);
