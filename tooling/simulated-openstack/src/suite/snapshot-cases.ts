/** Cases of images that nova creates from servers. */

import { strict as assert } from 'node:assert';
import type { JsonObject } from '@nodepool/core';
import { textOf } from './api-client.js';
import { casesOf, type ApiCase, type TestBed } from './test-bed.js';

const computeCase = casesOf('compute');

/** Property of the base image. */
const MARK = 'nodepool_upload_id';

/** Creates a server from an image with a property of its own. */
async function serverFromImage(bed: TestBed): Promise<{ readonly id: string; readonly imageId: string }> {
  const { demo } = bed;
  const base = { name: 'case-base', disk_format: 'raw', container_format: 'bare', [MARK]: '7' };
  const imageId = textOf((await demo.post('image', '/images', base)).json()['id']);
  bed.afterwards(() => demo.delete('image', `/images/${imageId}`));
  const headers = { 'Content-Type': 'application/octet-stream' };
  await demo.call('image', 'PUT', `/images/${imageId}/file`, { headers, data: 'hello' });
  const { id } = await bed.server('case-origin', { more: { imageRef: imageId } });
  return { id: textOf(id), imageId };
}

/** Resolves with the active image of this name, and deletes it after the case. */
async function imageNamed(bed: TestBed, name: string): Promise<JsonObject> {
  const path = `/images?name=${name}&owner=${bed.demo.projectId}`;
  const listed = await bed.demo.until(
    'image',
    path,
    (answer) => answer.list('images').length > 0 && answer.list('images').every(({ status }) => status === 'active'),
  );
  const [image] = listed.list('images');
  assert.ok(image !== undefined);
  bed.afterwards(() => bed.demo.delete('image', `/images/${textOf(image['id'])}`));
  return image;
}

async function act(bed: TestBed, id: string, action: object, name: string): Promise<JsonObject> {
  const answer = await bed.demo.post('compute', `/servers/${id}/action`, action);
  assert.equal(answer.status, 202, answer.text);
  return imageNamed(bed, name);
}

export const snapshotCases: readonly ApiCase[] = [
  computeCase('copies the properties of the image into snapshots and backups, and adds its own', async (bed) => {
    const { id, imageId } = await serverFromImage(bed);
    const snapshot = await act(bed, id, { createImage: { name: 'case-snapshot' } }, 'case-snapshot');
    const wanted = { createBackup: { name: 'case-backup', backup_type: 'daily', rotation: 1 } };
    await bed.demo.until(
      'compute',
      `/servers/${id}`,
      (shown) => shown.member('server')['OS-EXT-STS:task_state'] === null,
    );
    const backup = await act(bed, id, wanted, 'case-backup');
    for (const [image, type] of [
      [snapshot, 'snapshot'],
      [backup, 'backup'],
    ] as const) {
      const { [MARK]: mark, instance_uuid, base_image_ref, image_type, visibility } = image;
      assert.deepEqual(
        { mark, instance_uuid, base_image_ref, image_type, visibility },
        { mark: '7', instance_uuid: id, base_image_ref: imageId, image_type: type, visibility: 'private' },
      );
    }
  }),
  computeCase('keeps the disk of a shelved server as an image, with the properties of its image', async (bed) => {
    const { demo } = bed;
    const { id, imageId } = await serverFromImage(bed);
    const disk = await act(bed, id, { shelve: null }, 'case-origin-shelved');
    const { [MARK]: mark, instance_uuid, image_type } = disk;
    assert.deepEqual({ mark, instance_uuid, image_type }, { mark: '7', instance_uuid: id, image_type: 'snapshot' });
    const path = `/servers/${id}`;
    const shelved = await demo.until(
      'compute',
      path,
      (shown) => shown.member('server')['status'] === 'SHELVED_OFFLOADED',
    );
    assert.equal((shelved.member('server')['image'] as JsonObject)['id'], imageId);
    assert.equal((await demo.post('compute', `${path}/action`, { unshelve: null })).status, 202);
    await demo.until('compute', path, (shown) => shown.member('server')['status'] === 'ACTIVE');
    await bed.gone('image', `/images/${textOf(disk['id'])}`);
  }),
];
