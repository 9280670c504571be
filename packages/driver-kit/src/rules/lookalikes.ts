import assert from 'node:assert/strict';
import type { ExternalId, ImageManager, ImageTags, InstanceTags } from '@nodepool/core';
import { expectEqual } from '../expectations.js';
import type { ProviderHarness } from '../provider-harness.js';
import type { RuleGroup } from '../rule.js';
import { fromStart } from '../rule-context.js';
import { findImage, imageRule, listAll, uploadOf } from './images.js';

/** Time after which the upload is aborted (ms). */
const ABORT_AFTER_MS = 1000;

/** Images that differ from the failing upload's image in a single tag. */
const OTHER_IMAGES: readonly (readonly [string, Partial<ImageTags>])[] = [
  ['another installation', { nodepool_installation: 'fedcba9876543210' }],
  ['another provider', { nodepool_provider_name: 'another-provider' }],
  ['another disk image', { nodepool_image_name: 'another-image' }],
  ['another build', { nodepool_build_id: 'c'.repeat(32) }],
  ['another upload', { nodepool_upload_id: '0000000002' }],
  ['another format', { nodepool_image_format: 'another-format' }],
];

/** Instances that have the node's id but do not belong to the node. */
const OTHER_INSTANCES: readonly (readonly [string, Partial<InstanceTags>])[] = [
  ['another installation', { nodepool_installation: 'fedcba9876543210' }],
  ['another provider', { nodepool_provider_name: 'another-provider' }],
  ['another pool', { nodepool_pool_name: 'another-pool' }],
  ['another launch attempt', { nodepool_launch_attempt: 'f'.repeat(32) }],
];

export const lookalikes: RuleGroup = {
  title: 'Look-alikes',
  text: 'Ids of nodes and uploads repeat in every installation; only all tags together identify a resource.',
  rules: [
    {
      id: 'lookalike.node',
      since: '1.0',
      title: 'resources of another installation, provider, pool or attempt survive a deletion',
      text:
        '`cleanupNode` with `externalId: null` finds instances by their tags. It compares the node id, the ' +
        'provider, the pool, the launch attempt and the installation. A node id proves nothing: if the data of ' +
        'ZooKeeper is lost or replaced, ids start again while the instances of the former nodes still run.',
      check: fromStart(async (harness) => {
        const node = harness.node();
        const theirs = new Map<string, ExternalId>();
        for (const [whose, difference] of OTHER_INSTANCES) {
          const { tags } = harness.node();
          const sameId = { ...tags, nodepool_node_id: node.id, ...difference };
          const { externalId } = await harness.launched({ id: node.id, tags: sameId });
          theirs.set(whose, externalId);
        }
        await harness.launched(node);
        await harness.cleanUp(node, null);
        const left = (await harness.instances()).map(({ externalId }) => JSON.stringify(externalId));
        for (const [whose, externalId] of theirs) {
          assert.ok(left.includes(JSON.stringify(externalId)), `the instance of ${whose} was deleted with the node`);
        }
        expectEqual(left.length, theirs.size, 'instances after the deletion of the node');
      }),
    },
    imageRule({
      id: 'lookalike.upload-refused',
      needs: ['fault:upload:refuse'],
      title: 'images that differ in one tag survive a failed upload',
      text:
        'A builder deletes only the remains of its failed upload, and no other image, not even one of the same ' +
        'name. In a cloud that identifies images, or the files that they are created from, by name, the name must ' +
        'contain the whole identity; `imageTagsHash` helps with that.',
      check: async ({ harness, images: manager }, file) => {
        const theirs = await uploadOthers(harness, manager, file);
        await harness.plan('upload', 'refuse');
        await harness.failureOf(manager.uploadImage(uploadOf(harness, file)), 'an upload that the cloud refuses');
        await assertOnlyTheirs(harness, manager, theirs, 'an upload that failed');
      },
    }),
    imageRule({
      id: 'lookalike.upload-aborted',
      needs: ['fault:upload:hang'],
      title: 'images that differ in one tag survive an aborted upload',
      text: 'A builder aborts its uploads when it loses its ZooKeeper session.',
      check: async ({ harness, images: manager }, file) => {
        const theirs = await uploadOthers(harness, manager, file);
        await harness.plan('upload', 'hang');
        const controller = new AbortController();
        const upload = manager.uploadImage({ ...uploadOf(harness, file), signal: controller.signal });
        upload.catch(() => undefined);
        await harness.pass(ABORT_AFTER_MS);
        controller.abort(new Error('the session is lost'));
        await harness.failureOf(upload, 'an upload that was aborted');
        await assertOnlyTheirs(harness, manager, theirs, 'an upload that was aborted');
      },
    }),
  ],
};

/** Uploads one image for each difference, all with the same name. */
async function uploadOthers(
  harness: ProviderHarness,
  manager: ImageManager,
  file: string,
): Promise<ReadonlyMap<string, ExternalId>> {
  const theirs = new Map<string, ExternalId>();
  for (const [whose, difference] of OTHER_IMAGES) {
    const upload = manager.uploadImage(uploadOf(harness, file, difference));
    theirs.set(whose, await harness.finish(upload, `the upload of ${whose}`));
  }
  return theirs;
}

async function assertOnlyTheirs(
  harness: ProviderHarness,
  manager: ImageManager,
  theirs: ReadonlyMap<string, ExternalId>,
  when: string,
): Promise<void> {
  for (const [whose, externalId] of theirs) {
    const image = await findImage(harness, manager, externalId);
    assert.ok(image?.ready === true, `the image of ${whose} did not survive ${when}`);
  }
  expectEqual((await listAll(harness, manager)).length, theirs.size, `images after ${when}`);
}
