import assert from 'node:assert/strict';
import type { Resource } from '@nodepool/core';
import { expectEqual } from '../expectations.js';
import type { ProviderHarness } from '../provider-harness.js';
import type { RuleGroup } from '../rule.js';
import { fromStart } from '../rule-context.js';
import { imageRule, listAll, uploadOf } from './images.js';

export const copies: RuleGroup = {
  title: 'Copies',
  text: 'Clouds [copy tags](writing-a-driver.md#copies), e.g. into snapshots.',
  rules: [
    {
      id: 'copy.instance',
      since: '1.4',
      title: 'a copy of an instance is listed without tags, and not deleted',
      text:
        '`listNodes` returns the copy without the node’s tags, because it uses the quota. `cleanupNode` with ' +
        '`externalId: null` and `cleanupLeakedResources` do not delete it.',
      needs: ['instance-copies'],
      check: fromStart(async (harness) => {
        const node = harness.node();
        const { externalId } = await harness.launched(node);
        const exists = await harness.able('copyInstance')(externalId);
        assert.ok(await exists(), 'the test cloud has not created a copy of the instance');
        const listed = (await harness.ours()).map((instance) => instance.externalId);
        expectEqual(listed, [externalId], 'listed instances that have the tags of this provider');
        await harness.cleanUp(node, null);
        assert.ok(await exists(), 'the copy was deleted with the node');
        await deleteAllLeaks(harness);
        assert.ok(await exists(), 'the copy was deleted as a leaked resource');
      }),
    },
    imageRule({
      id: 'copy.image',
      since: '1.4',
      needs: ['image-copies'],
      title: 'a copy of an image is neither listed nor deleted',
      text:
        'A snapshot of a node, or the disk of a node that an operator has suspended, often has all properties of the ' +
        'image that the node was created from. `listImages` does not contain it, because the builder deletes listed ' +
        'images that have the tags of an upload, and `cleanupLeakedResources` does not offer it.',
      check: async ({ harness, images: manager }, file) => {
        const externalId = await harness.finish(manager.uploadImage(uploadOf(harness, file)), 'the upload');
        const exists = await harness.able('copyImage')(externalId);
        assert.ok(await exists(), 'the test cloud has not created a copy of the image');
        const listed = (await listAll(harness, manager)).map((image) => image.externalId);
        expectEqual(listed, [externalId], 'listed images');
        await harness.finish(manager.deleteImage(externalId, harness.call()), 'the deletion of the image');
        await deleteAllLeaks(harness);
        assert.ok(await exists(), 'the copy of the image was deleted as a leaked resource');
      },
    }),
  ],
};

/** Runs a round in which every resource looks leaked. */
async function deleteAllLeaks(harness: ProviderHarness): Promise<void> {
  const leaked = async (resources: readonly Resource[]): Promise<readonly Resource[]> => resources;
  const round = harness.provider.cleanupLeakedResources({ leaked }, harness.call(300_000));
  await harness.finish(round, 'the search for leaks');
  await harness.pass(120_000);
}
