/** Cases of glance. */

import { strict as assert } from 'node:assert';
import { createHash } from 'node:crypto';
import { type ApiAnswer, type RequestParts, textOf } from './api-client.js';
import { casesOf, hasKeys, noId, refused, refusedInHtml, type ApiCase, type TestBed } from './test-bed.js';

const imageCase = casesOf('image');

const OCTETS = { 'Content-Type': 'application/octet-stream' };
const IMAGE_KEYS = [
  'name',
  'disk_format',
  'container_format',
  'visibility',
  'size',
  'virtual_size',
  'status',
  'checksum',
  'protected',
  'min_ram',
  'min_disk',
  'owner',
  'os_hidden',
  'os_hash_algo',
  'os_hash_value',
  'id',
  'created_at',
  'updated_at',
  'tags',
  'self',
  'file',
  'schema',
];

const spec = (more: object = {}): object => ({
  name: 'case-image',
  disk_format: 'raw',
  container_format: 'bare',
  visibility: 'private',
  ...more,
});

/** Creates an image, which is deleted after the case. */
async function create(bed: TestBed, more: object = {}): Promise<ApiAnswer> {
  const answer = await bed.demo.post('image', '/images', spec(more));
  assert.equal(answer.status, 201, answer.text);
  const id = textOf(answer.json()['id']);
  bed.afterwards(() => bed.demo.delete('image', `/images/${id}`));
  return answer;
}

function upload(bed: TestBed, id: string, request: RequestParts): Promise<ApiAnswer> {
  return bed.demo.call('image', 'PUT', `/images/${id}/file`, { headers: OCTETS, ...request });
}

export const imageCases: readonly ApiCase[] = [
  imageCase('refuses an invalid token with 401 and HTML', async ({ demo }) =>
    refusedInHtml(await demo.get('image', '/images', { token: 'nonsense' }), 401, '<h1>401 Unauthorized</h1>'),
  ),
  imageCase('creates an image without data, with properties beside its attributes', async (bed) => {
    const answer = await create(bed, { nodepool_upload_id: '42', hw_disk_bus: 'scsi' });
    const image = answer.json();
    hasKeys(image, [...IMAGE_KEYS, 'nodepool_upload_id', 'hw_disk_bus']);
    const { status, size, checksum, owner, nodepool_upload_id } = image;
    assert.deepEqual([status, size, checksum, owner], ['queued', null, null, bed.demo.projectId]);
    assert.equal(nodepool_upload_id, '42');
    assert.equal(answer.headers.get('location'), `${bed.demo.endpoint('image')}/images/${textOf(image['id'])}`);
  }),
  imageCase('accepts data once, and then shows their checksums', async (bed) => {
    const id = textOf((await create(bed)).json()['id']);
    const data = Buffer.alloc(300_000, 'abc');
    const sent = await upload(bed, id, { data });
    assert.deepEqual([sent.status, sent.text], [204, '']);
    const image = (await bed.demo.get('image', `/images/${id}`)).json();
    const { status, size, checksum, os_hash_algo, os_hash_value } = image;
    assert.deepEqual([status, size], ['active', data.length]);
    assert.equal(checksum, createHash('md5').update(data).digest('hex'));
    assert.deepEqual([os_hash_algo, os_hash_value], ['sha512', createHash('sha512').update(data).digest('hex')]);
    const again = await upload(bed, id, { data });
    refusedInHtml(again, 409, 'Image status transition from active to saving is not allowed');
  }),
  imageCase('returns the data', async (bed) => {
    const id = textOf((await create(bed)).json()['id']);
    assert.equal((await bed.demo.get('image', `/images/${id}/file`)).status, 204);
    await upload(bed, id, { data: 'hello' });
    const file = await bed.demo.get('image', `/images/${id}/file`);
    assert.deepEqual([file.status, file.text], [200, 'hello']);
    assert.equal(file.headers.get('content-md5'), '5d41402abc4b2a76b9719d911017c592');
  }),
  imageCase('refuses data of another type than octets with 415', async (bed) => {
    const id = textOf((await create(bed)).json()['id']);
    const refusedData = await upload(bed, id, { data: 'hello', headers: { 'Content-Type': 'text/plain' } });
    refusedInHtml(refusedData, 415, 'The request media type text/plain is not supported by this server.');
  }),
  imageCase('answers 404 for reading, uploading to and deleting a nonexistent image', async (bed) => {
    const id = noId();
    refusedInHtml(await bed.demo.get('image', `/images/${id}`), 404, `No image found with ID ${id}`);
    refusedInHtml(await upload(bed, id, { data: 'hello' }), 404, `No image found with ID ${id}`);
    refusedInHtml(await bed.demo.delete('image', `/images/${id}`), 404, `Failed to find image ${id} to delete`);
  }),
  imageCase('refuses an unknown format, and a property that is not a text, with 400', async ({ demo }) => {
    const format = await demo.post('image', '/images', spec({ disk_format: 'nonsense' }));
    refusedInHtml(format, 400, '&#x27;nonsense&#x27; is not one of [None, &#x27;ami&#x27;');
    const property = await demo.post('image', '/images', spec({ size_hint: 1 }));
    refusedInHtml(property, 400, '1 is not of type &#x27;string&#x27;');
  }),
  imageCase('refuses the publication of an image, and the deletion of a foreign one, with 403', async (bed) => {
    const published = await bed.demo.post('image', '/images', spec({ visibility: 'public' }));
    refusedInHtml(published, 403, 'You are not authorized to complete publicize_image action.');
    const deleted = await bed.demo.delete('image', `/images/${bed.imageId}`);
    refusedInHtml(deleted, 403, 'You do not own this image');
  }),
  imageCase('hides a private image from other projects, also in nova', async (bed) => {
    const id = textOf((await create(bed)).json()['id']);
    refusedInHtml(await bed.limited.get('image', `/images/${id}`), 404, `No image found with ID ${id}`);
    refused(await bed.createServer('case-foreign', { client: bed.limited, more: { imageRef: id } }), 400, {
      badRequest: { code: 400, message: 'Can not find requested image' },
    });
    refused(await bed.createServer('case-queued', { more: { imageRef: id } }), 400, {
      badRequest: { code: 400, message: `Image ${id} is not active.` },
    });
  }),
  imageCase('finds images by name, by tag, and by a property', async (bed) => {
    const mark = noId();
    const id = textOf((await create(bed, { name: mark, nodepool_upload_id: mark, tags: [mark] })).json()['id']);
    for (const query of [`name=${mark}`, `tag=${mark}`, `nodepool_upload_id=${mark}`]) {
      const found = (await bed.demo.get('image', `/images?${query}`)).list('images');
      assert.deepEqual(
        found.map((image) => image['id']),
        [id],
        query,
      );
    }
    assert.deepEqual((await bed.demo.get('image', `/images?name=${noId()}`)).list('images'), []);
  }),
  imageCase('lists each image once, in pages with the path of the next one', async (bed) => {
    const ids = new Set<string>();
    for (const name of ['a', 'b', 'c']) ids.add(textOf((await create(bed, { name, mark: 'case-pages' })).json()['id']));
    const seen: string[] = [];
    const root = bed.demo.endpoint('image').replace(/\/v2$/, '');
    let path = '/v2/images?limit=2&mark=case-pages';
    while (path !== '') {
      const page = await bed.demo.at(root + path);
      assert.equal(page.json()['first'], '/v2/images?limit=2&mark=case-pages');
      seen.push(...page.list('images').map((image) => textOf(image['id'])));
      path = textOf(page.json()['next']);
    }
    assert.deepEqual(seen.sort(), [...ids].sort());
  }),
  imageCase('keeps the id of a creation, and refuses a second image with it', async (bed) => {
    const id = noId();
    assert.equal((await create(bed, { id })).json()['id'], id);
    refusedInHtml(await bed.demo.post('image', '/images', spec({ id })), 409, `Image ID ${id} already exists!`);
  }),
  imageCase('lists hidden images only on request, and then alone, also if they are sought by id', async (bed) => {
    const owner = bed.demo.projectId;
    const shown = textOf((await create(bed)).json()['id']);
    const hidden = textOf((await create(bed, { os_hidden: true })).json()['id']);
    const listed = async (query: string): Promise<readonly boolean[]> => {
      const images = (await bed.demo.get('image', `/images?owner=${owner}&${query}`)).list('images');
      return [shown, hidden].map((id) => images.some((image) => image['id'] === id));
    };
    assert.deepEqual(await listed('os_hidden=false'), [true, false]);
    assert.deepEqual(await listed('os_hidden=true'), [false, true]);
    assert.deepEqual(await listed(`id=${hidden}`), [false, false]);
    assert.equal((await bed.demo.get('image', `/images/${hidden}`)).json()['os_hidden'], true);
    refusedInHtml(await bed.demo.get('image', '/images?os_hidden=1'), 400, 'Valid values are');
  }),
  imageCase('changes attributes and properties by a patch, and refuses another content type with 415', async (bed) => {
    const id = textOf((await create(bed)).json()['id']);
    const headers = { 'Content-Type': 'application/openstack-images-v2.1-json-patch' };
    const patch = (changes: object[]): Promise<ApiAnswer> =>
      bed.demo.call('image', 'PATCH', `/images/${id}`, { data: JSON.stringify(changes), headers });
    const changed = await patch([
      { op: 'add', path: '/colour', value: 'blue' },
      { op: 'replace', path: '/name', value: 'renamed' },
    ]);
    assert.equal(changed.status, 200, changed.text);
    const { name, colour } = changed.json();
    assert.deepEqual({ name, colour }, { name: 'renamed', colour: 'blue' });
    refusedInHtml(await patch([{ op: 'replace', path: '/nope', value: '1' }]), 409, 'Property nope does not exist.');
    assert.equal((await bed.demo.call('image', 'PATCH', `/images/${id}`, { json: [] })).status, 415);
  }),
  imageCase('deletes an image with 204, also without data, and then answers 404', async (bed) => {
    const id = textOf((await create(bed)).json()['id']);
    assert.equal((await bed.demo.delete('image', `/images/${id}`)).status, 204);
    assert.equal((await bed.demo.get('image', `/images/${id}`)).status, 404);
    assert.equal((await bed.demo.delete('image', `/images/${id}`)).status, 404);
  }),
  imageCase('refuses to delete a protected image with 403', async (bed) => {
    const id = textOf((await create(bed, { protected: true })).json()['id']);
    const headers = { 'Content-Type': 'application/openstack-images-v2.1-json-patch' };
    const data = JSON.stringify([{ op: 'replace', path: '/protected', value: false }]);
    bed.afterwards(() => bed.demo.call('image', 'PATCH', `/images/${id}`, { data, headers }));
    const deleted = await bed.demo.delete('image', `/images/${id}`);
    refusedInHtml(deleted, 403, `Image ${id} is protected and cannot be deleted.`);
  }),
];
