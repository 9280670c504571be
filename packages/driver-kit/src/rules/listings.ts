import assert from 'node:assert/strict';
import { externalIdKey, type Resource } from '@nodepool/core';
import { expectEqual } from '../expectations.js';
import type { ProviderHarness } from '../provider-harness.js';
import type { RuleGroup } from '../rule.js';
import { fromStart, type RuleContext } from '../rule-context.js';

/** Number of foreign instances: more than one page of any test cloud holds. */
const FOREIGN = 7;
/** Maximum number of pages before a listing counts as endless. */
const MAX_PAGES = 100;
/** Time after which a driver that caches listings must query the cloud again (ms). */
const RELIST_DELAY_MS = 60_000;

export const listings: RuleGroup = {
  title: 'Listings and leaks',
  text: 'An instance that a listing does not contain counts as deleted.',
  rules: [
    {
      id: 'list.complete',
      since: '1.0',
      title: '`listNodes` returns all instances of the account from all pages',
      text:
        '`listNodes` returns every instance of the account: Nodepool’s own with their tags, and foreign ones ' +
        'because they use the quota too. If a driver returned only the first page, the launcher would treat ' +
        'running instances as lost.',
      needs: ['foreign-instances'],
      check: fromStart(async (harness) => {
        const nodes = [harness.node(), harness.node()];
        for (const node of nodes) await harness.launched(node);
        await harness.able('addForeignInstances')(FOREIGN);
        const listed = await list(harness);
        expectEqual(listed.length, FOREIGN + nodes.length, 'instances that are listed');
        const ours = listed.map(({ tags }) => tags['nodepool_node_id']).filter((id) => id !== undefined);
        expectEqual(ours.sort(), nodes.map(({ id }) => id).sort(), 'nodes whose instances are listed with their tags');
        const ids = new Set(listed.map(({ externalId }) => externalIdKey(externalId)));
        expectEqual(ids.size, listed.length, 'different external ids in the list');
      }),
    },
    {
      id: 'list.rejected',
      since: '1.0',
      title: 'a listing fails if any page fails',
      text:
        'The kit lets each page fail in turn. An incomplete listing that looks complete is the worst possible ' +
        'defect of a driver: instances that it does not contain count as deleted.',
      needs: ['foreign-instances', 'fault:list:refuse'],
      check: async (context: RuleContext): Promise<void> => {
        for (let page = 0; page < MAX_PAGES; page += 1) {
          const harness = await context.start();
          await harness.able('addForeignInstances')(FOREIGN);
          await harness.plan('list', 'refuse', page);
          let listed: number;
          try {
            listed = (await list(harness)).length;
          } catch {
            continue;
          }
          expectEqual(listed, FOREIGN, `instances in a list of which page ${page + 1} failed`);
          assert.ok(page > 0, 'a list whose first page failed was not rejected');
          return;
        }
        assert.fail(`the list has more than ${MAX_PAGES} pages`);
      },
    },
    {
      id: 'list.facts',
      since: '1.0',
      title: 'a listed instance has the external id and `resources` of its launch',
      text:
        'The listed instance has the external id that the launch returned (equal as JSON) and the same ' +
        '`resources`. It is `ready`, not `deleted` and not `failed`. Core identifies instances by that id and ' +
        'computes the quota in use from those amounts.',
      check: fromStart(async (harness) => {
        const launched = await harness.launched();
        const [listed] = await harness.ours();
        assert.ok(listed !== undefined, 'a launched instance is not in the list, or not with its tags');
        expectEqual(
          externalIdKey(listed.externalId),
          externalIdKey(launched.externalId),
          'the external id in the list',
        );
        const { ready, failed, deleted } = listed;
        expectEqual(
          { ready, failed, deleted },
          { ready: true, failed: undefined, deleted: false },
          'the listed state of a launched instance',
        );
        expectEqual(listed.resources, launched.resources, 'the resources of a launched instance in the list');
      }),
    },
    {
      id: 'list.failed',
      since: '1.1',
      title: 'failed instances are listed with tags, and can be deleted as leaks',
      text:
        'An instance in ERROR, stopped or broken still exists, uses quota and costs money. `listNodes` returns it ' +
        'with its tags, not as `deleted`, and `cleanupLeakedResources` can delete it. If the listing omitted it, ' +
        'the launcher would treat it as deleted.',
      needs: ['break-instance'],
      check: fromStart(async (harness) => {
        const node = harness.node();
        const { externalId } = await harness.launched(node);
        await harness.able('breakInstance')(externalId);
        await harness.pass(RELIST_DELAY_MS);
        const listed = (await list(harness)).find(
          (each) => externalIdKey(each.externalId) === externalIdKey(externalId),
        );
        assert.ok(listed !== undefined, 'an instance that has failed is missing from the list of instances');
        assert.ok(!listed.deleted, 'an instance that has failed is listed as deleted');
        expectEqual(
          listed.tags['nodepool_node_id'],
          node.id,
          'the tag nodepool_node_id of an instance that has failed',
        );
        let offered: readonly Resource[] = [];
        await cleanUpLeaks(harness, async (resources) => (offered = resources));
        assert.ok(
          offered.some((each) => externalIdKey(each.externalId) === externalIdKey(externalId)),
          '`round.leaked` was not called for a failed instance',
        );
        await harness.pass(120_000);
        await harness.assertNothingLeft('after an instance that had failed was deleted as leaked');
      }),
    },
    {
      id: 'list.reason',
      since: '1.4',
      title: '`failed` has the reason of a failure; a stopped instance is only not `ready`',
      text:
        'An instance in ERROR, preempted, evicted or broken is listed with `failed` and not as `ready`, also after its ' +
        'launch. The launcher deletes and replaces a ready node whose instance has failed, instead of giving it to a ' +
        'request. An instance that is only stopped, and can be started again, is listed without `failed` and not as ' +
        '`ready`.',
      needs: ['break-instance'],
      check: fromStart(async (harness) => {
        const { externalId } = await harness.launched();
        await harness.able('breakInstance')(externalId);
        await harness.pass(RELIST_DELAY_MS);
        const [listed] = await harness.ours();
        assert.ok(listed !== undefined, 'an instance that has failed is missing from the list of instances');
        assert.ok(!listed.ready, 'an instance that has failed is listed as ready');
        assert.ok(
          typeof listed.failed === 'string' && listed.failed !== '',
          'an instance that has failed is listed without a reason in `failed`',
        );
      }),
    },
    {
      id: 'list.gone',
      since: '1.4',
      title: 'a deleted instance is omitted, or listed as `deleted`',
      text:
        'A listing shows the cloud at the time of its request, and no older state. Otherwise the launcher would give ' +
        'a ready node without an instance to a request. Listing the instance as `deleted` is equivalent.',
      needs: ['destroy-instance'],
      check: fromStart(async (harness) => {
        const { externalId } = await harness.launched();
        const kept = await harness.launched();
        await list(harness);
        await harness.able('destroyInstance')(externalId);
        await harness.pass(RELIST_DELAY_MS);
        const left = (await harness.ours()).filter(({ deleted }) => !deleted);
        expectEqual(
          left.map((each) => externalIdKey(each.externalId)),
          [externalIdKey(kept.externalId)],
          'the instances in the list after one of two was deleted',
        );
      }),
    },
    {
      id: 'leak.offered',
      since: '1.0',
      title: '`cleanupLeakedResources` lists before it calls `round.leaked`, and deletes only what that returns',
      text:
        '`cleanupLeakedResources` lists the resources first and calls `round.leaked` afterwards. In the other ' +
        'order, a resource created in between would look leaked. It deletes exactly the resources that the call ' +
        'returns.',
      check: fromStart(async (harness) => {
        const leaked = harness.node();
        await harness.launched(leaked);
        const kept = await harness.launched();
        let offered: readonly Resource[] = [];
        const round = async (resources: readonly Resource[]): Promise<readonly Resource[]> => {
          offered = resources;
          return resources.filter(({ tags }) => tags['nodepool_node_id'] === leaked.id);
        };
        await cleanUpLeaks(harness, round);
        const instances = offered.filter(({ kind }) => kind === 'instance');
        expectEqual(instances.length, 2, 'resources of the kind "instance" for which `round.leaked` was called');
        await harness.cloud.time.until(() => false, 120_000);
        const left = (await harness.instances()).map(({ externalId }) => externalId);
        expectEqual(left, [kept.externalId], 'instances after the round');
      }),
    },
    {
      id: 'leak.gone',
      since: '1.0',
      title: 'a leaked resource that no longer exists is no failure',
      text: 'Another client may have deleted it first. It must not prevent the deletion of the other resources.',
      needs: ['destroy-instance'],
      check: fromStart(async (harness) => {
        for (const node of [harness.node(), harness.node()]) await harness.launched(node);
        const [first] = await harness.instances();
        assert.ok(first?.externalId !== undefined, 'a launched instance has no externalId');
        const { externalId } = first;
        await cleanUpLeaks(harness, async (resources) => {
          await harness.able('destroyInstance')(externalId);
          return resources;
        });
        await harness.cloud.time.until(() => false, 120_000);
        expectEqual((await harness.instances()).length, 0, 'instances after a round in which all were leaked');
      }),
    },
  ],
};

function list(harness: ProviderHarness): ReturnType<ProviderHarness['provider']['listNodes']> {
  return harness.finish(harness.provider.listNodes(harness.call()), 'the list of instances');
}

async function cleanUpLeaks(
  harness: ProviderHarness,
  leaked: (resources: readonly Resource[]) => Promise<readonly Resource[]>,
): Promise<void> {
  await harness.finish(
    harness.provider.cleanupLeakedResources({ leaked }, harness.call(300_000)),
    'the search for leaks',
  );
}
