/** Cases of cinder. */

import { strict as assert } from 'node:assert';
import type { JsonObject } from '@nodepool/core';
import { textOf, type ApiAnswer, type ApiClient } from './api-client.js';
import { casesOf, hasKeys, noId, refused, type ApiCase, type TestBed } from './test-bed.js';

const volumeCase = casesOf('volume');

const VOLUME_KEYS = [
  'id',
  'status',
  'size',
  'availability_zone',
  'created_at',
  'updated_at',
  'name',
  'description',
  'volume_type',
  'snapshot_id',
  'source_volid',
  'metadata',
  'links',
  'user_id',
  'bootable',
  'encrypted',
  'replication_status',
  'consistencygroup_id',
  'multiattach',
  'attachments',
  'os-vol-tenant-attr:tenant_id',
];
const NOT_DELETABLE = /^Invalid volume: Volume status must be available or error or /;

/** Creates a volume, which is deleted after the case. */
async function create(bed: TestBed, more: object = {}, client: ApiClient = bed.demo): Promise<ApiAnswer> {
  const answer = await client.post('volume', '/volumes', { volume: { size: 1, ...more } });
  if (answer.status === 202) {
    const path = `/volumes/${textOf(answer.member('volume')['id'])}`;
    bed.afterwards(async () => {
      await client.until('volume', path, (shown) => shown.status === 404 || !shown.text.includes('"creating"'));
      await client.delete('volume', path);
      await bed.gone('volume', path, client);
    });
  }
  return answer;
}

const badRequest = (message: string): object => ({ badRequest: { code: 400, message } });
const itemNotFound = (message: string): object => ({ itemNotFound: { code: 404, message } });
const settled = (client: ApiClient, id: string): Promise<ApiAnswer> =>
  client.until('volume', `/volumes/${id}`, (shown) => shown.member('volume')['status'] !== 'creating');

export const volumeCases: readonly ApiCase[] = [
  volumeCase(
    'refuses an invalid token with 401, and the path of another project with 400',
    async ({ demo, limited }) => {
      refused(await demo.get('volume', '/volumes', { token: 'nonsense' }), 401, {
        error: { code: 401, title: 'Unauthorized', message: 'The request you have made requires authentication.' },
      });
      refused(await limited.at(`${demo.endpoint('volume')}/volumes`), 400, {
        badRequest: { code: 400, message: 'Malformed request url' },
      });
    },
  ),
  volumeCase('creates a volume with metadata, and finds it by them', async (bed) => {
    const { demo } = bed;
    const mark = noId();
    const created = await create(bed, { name: mark, metadata: { mark } });
    const volume = created.member('volume');
    assert.deepEqual([created.status, volume['status']], [202, 'creating']);
    const id = textOf(volume['id']);
    const made = (await settled(demo, id)).member('volume');
    hasKeys(made, VOLUME_KEYS);
    assert.deepEqual([made['status'], made['size'], made['metadata']], ['available', 1, { mark }]);
    const query = encodeURIComponent(`{'mark':'${mark}'}`);
    const found = (await demo.get('volume', `/volumes/detail?metadata=${query}`)).list('volumes');
    assert.deepEqual(
      found.map((other) => other['id']),
      [id],
    );
  }),
  volumeCase('adds metadata with POST, and replaces them with PUT', async (bed) => {
    const id = textOf((await create(bed, { metadata: { a: '1' } })).member('volume')['id']);
    await settled(bed.demo, id);
    const path = `/volumes/${id}/metadata`;
    const added = await bed.demo.post('volume', path, { metadata: { b: '2' } });
    assert.deepEqual([added.status, added.json()], [200, { metadata: { a: '1', b: '2' } }]);
    assert.deepEqual((await bed.demo.put('volume', path, { metadata: { c: '3' } })).json(), {
      metadata: { c: '3' },
    });
    assert.deepEqual((await bed.demo.get('volume', path)).json(), { metadata: { c: '3' } });
  }),
  volumeCase('lists each volume once, in pages with a link to the next one', async (bed) => {
    const name = noId();
    const made = await Promise.all(['a', 'b', 'c'].map(() => create(bed, { name })));
    const seen: string[] = [];
    let url = `${bed.demo.endpoint('volume')}/volumes/detail?limit=2&name=${name}`;
    while (url !== '') {
      const page = await bed.demo.at(url);
      seen.push(...page.list('volumes').map((volume) => textOf(volume['id'])));
      url = textOf(page.list('volumes_links')[0]?.['href']);
    }
    const ids = made.map((answer) => textOf(answer.member('volume')['id']));
    assert.deepEqual(seen.sort(), ids.sort());
  }),
  volumeCase('deletes a volume with 202, refuses a second deletion with 400, and then answers 404', async (bed) => {
    const { demo } = bed;
    const id = textOf((await create(bed)).member('volume')['id']);
    await settled(demo, id);
    assert.equal((await demo.delete('volume', `/volumes/${id}`)).status, 202);
    const again = await demo.delete('volume', `/volumes/${id}`);
    if (again.status === 400) assert.match(textOf(again.member('badRequest')['message']), NOT_DELETABLE);
    else assert.equal(again.status, 404);
    await bed.gone('volume', `/volumes/${id}`);
    refused(await demo.delete('volume', `/volumes/${id}`), 404, {
      itemNotFound: { code: 404, message: `Volume ${id} could not be found.` },
    });
  }),
  volumeCase('shows the status error for a volume that could not be created, and deletes it', async (bed) => {
    const id = textOf((await create(bed, { metadata: { ostack_fail: 'create' } })).member('volume')['id']);
    assert.equal((await settled(bed.demo, id)).member('volume')['status'], 'error');
    assert.equal((await bed.demo.delete('volume', `/volumes/${id}`)).status, 202);
  }),
  volumeCase('refuses to delete the volume of a server with 400', async (bed) => {
    const mapping = {
      boot_index: 0,
      source_type: 'image',
      destination_type: 'volume',
      uuid: bed.imageId,
      volume_size: 1,
    };
    const block_device_mapping_v2 = [{ ...mapping, delete_on_termination: true }];
    const server = await bed.server('case-attached', { more: { imageRef: '', block_device_mapping_v2 } });
    const attachments = `/servers/${textOf(server['id'])}/os-volume_attachments`;
    const [attached] = (await bed.demo.get('compute', attachments)).list('volumeAttachments');
    const refusal = await bed.demo.delete('volume', `/volumes/${textOf(attached?.['volumeId'])}`);
    assert.equal(refusal.status, 400);
    assert.match(textOf(refusal.member('badRequest')['message']), NOT_DELETABLE);
  }),
  volumeCase('shows a volume as in use while nova has attached it to a server', async (bed) => {
    const { demo } = bed;
    const volumeId = textOf((await create(bed)).member('volume')['id']);
    await settled(demo, volumeId);
    const serverId = textOf((await bed.server('case-attaching'))['id']);
    const path = `/servers/${serverId}/os-volume_attachments`;
    const attached = await demo.post('compute', path, { volumeAttachment: { volumeId } });
    const attachment = { id: volumeId, serverId, volumeId, device: '/dev/sdb' };
    assert.deepEqual([attached.status, attached.json()], [200, { volumeAttachment: attachment }]);
    await demo.until('volume', `/volumes/${volumeId}`, (shown) => shown.member('volume')['status'] === 'in-use');
    const volume = (await demo.get('volume', `/volumes/${volumeId}`)).member('volume');
    const [{ server_id, device } = {}] = volume['attachments'] as JsonObject[];
    assert.deepEqual([server_id, device], [serverId, '/dev/sdb']);
    assert.deepEqual((await demo.get('compute', path)).json(), { volumeAttachments: [attachment] });
    const one = await demo.get('compute', `${path}/${volumeId}`);
    assert.deepEqual(one.json(), { volumeAttachment: attachment });
    const taken = `Invalid volume: volume ${volumeId} is already attached to instances: ${serverId}`;
    refused(await demo.post('compute', path, { volumeAttachment: { volumeId } }), 400, badRequest(taken));
    assert.equal((await demo.delete('compute', `${path}/${volumeId}`)).status, 202);
    await demo.until('volume', `/volumes/${volumeId}`, (shown) => shown.member('volume')['status'] === 'available');
    const unattached = `Instance ${serverId} is not attached to volume ${volumeId}`;
    await demo.until('compute', `${path}/${volumeId}`, ({ status }) => status === 404);
    refused(await demo.delete('compute', `${path}/${volumeId}`), 404, itemNotFound(unattached));
  }),
  volumeCase('receives no call from nova to attach a nonexistent volume, or to detach a boot volume', async (bed) => {
    const { demo } = bed;
    const mapping = { boot_index: 0, source_type: 'image', destination_type: 'volume', volume_size: 1 };
    const block_device_mapping_v2 = [{ ...mapping, uuid: bed.imageId, delete_on_termination: true }];
    const server = await bed.server('case-root', { more: { imageRef: '', block_device_mapping_v2 } });
    const path = `/servers/${textOf(server['id'])}/os-volume_attachments`;
    const attach = (volumeAttachment: object): Promise<ApiAnswer> => demo.post('compute', path, { volumeAttachment });
    const absent = noId();
    refused(await attach({ volumeId: absent }), 404, itemNotFound(`Volume ${absent} could not be found.`));
    const invalid = 'Invalid input for field/attribute';
    const noUuid = `${invalid} volumeId. Value: none. 'none' is not a 'uuid'`;
    refused(await attach({ volumeId: 'none' }), 400, badRequest(noUuid));
    const missing = `${invalid} volumeAttachment. Value: {}. 'volumeId' is a required property`;
    refused(await attach({}), 400, badRequest(missing));
    const [root] = (await demo.get('compute', path)).list('volumeAttachments');
    assert.ok(root);
    assert.equal(root['device'], '/dev/sda');
    const detached = await demo.delete('compute', `${path}/${textOf(root['volumeId'])}`);
    refused(detached, 400, badRequest('Cannot detach a root device volume'));
    refused(
      await demo.delete('compute', `${path}/${absent}`),
      404,
      itemNotFound(`Volume ${absent} could not be found.`),
    );
  }),
  volumeCase('has one availability zone', async ({ demo }) => {
    const zones = (await demo.get('volume', '/os-availability-zone')).list('availabilityZoneInfo');
    assert.deepEqual(zones, [{ zoneName: 'nova', zoneState: { available: true } }]);
  }),
  volumeCase('refuses a volume above the quota with 413 and a Retry-After of 0', async (bed) => {
    const { limited } = bed;
    const large = await create(bed, { size: 99 }, limited);
    const message =
      'VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed gigabytes quota. Requested 99G, quota is 5G and 0G has been consumed.';
    refused(large, 413, { overLimit: { code: 413, message, retryAfter: '0' } });
    assert.equal(large.headers.get('retry-after'), '0');
    await create(bed, {}, limited);
    await create(bed, {}, limited);
    refused(await create(bed, {}, limited), 413, {
      overLimit: {
        code: 413,
        message: "VolumeLimitExceeded: Maximum number of volumes allowed (2) exceeded for quota 'volumes'.",
        retryAfter: '0',
      },
    });
  }),
  volumeCase('changes a server to ERROR if its boot volume is above the quota', async (bed) => {
    const mapping = {
      boot_index: 0,
      source_type: 'image',
      destination_type: 'volume',
      uuid: bed.imageId,
      volume_size: 50,
    };
    const block_device_mapping_v2 = [{ ...mapping, delete_on_termination: true }];
    const more = { imageRef: '', block_device_mapping_v2 };
    const server = await bed.server('case-large', { client: bed.limited, more });
    assert.equal(server['status'], 'ERROR');
    assert.match(
      textOf((server['fault'] as JsonObject)['message']),
      /aborted: VolumeSizeExceedsAvailableQuota: .* Requested 50G, quota is 5G/,
    );
  }),
  volumeCase("returns the project's limits and their use", async ({ limited }) => {
    const absolute = (await limited.get('volume', '/limits')).member('limits')['absolute'] as JsonObject;
    const { maxTotalVolumes, maxTotalVolumeGigabytes, totalVolumesUsed } = absolute;
    assert.deepEqual([maxTotalVolumes, maxTotalVolumeGigabytes, totalVolumesUsed], [2, 5, 0]);
  }),
];
