import assert from 'node:assert/strict';
import { externalIdKey, sleep, type ExternalId, type Resource } from '@nodepool/core';
import { expectEqual } from '../expectations.js';
import type { ProviderHarness, TestNode } from '../provider-harness.js';
import type { RuleGroup } from '../rule.js';
import { fromStart, type RuleContext } from '../rule-context.js';
import { watch, type Watched } from '../watched.js';

const BOOT_MS = 30_000;
/** Time limit of a deletion whose id belongs to another instance (ms): several listings over some seconds. */
const DELETION_LIMIT_MS = 30_000;
/** Interval between two looks at a launch (ms). */
const LOOK_MS = 100;
/** Maximum number of remote calls of a deletion. */
const MAX_CALLS = 100;

export const ids: RuleGroup = {
  title: 'Ids',
  text: 'Some clouds give the id of an instance to [the next one](writing-a-driver.md#ids-that-a-cloud-uses-again).',
  rules: [
    {
      id: 'ids.attempts',
      since: '1.4',
      title: 'an id that the driver chooses, e.g. a name, contains the launch attempt',
      text:
        'The instance of a failed attempt can still exist, or appear late, when the next attempt begins. If the driver ' +
        'chooses the id, e.g. a name, it contains the launch attempt and not only the node. The deletion of one attempt ' +
        'does not affect the other one.',
      check: fromStart(async (harness) => {
        const [first, other] = [harness.node(), harness.node()];
        const { id } = first;
        const second = { id, tags: { ...other.tags, nodepool_node_id: id } };
        const one = await harness.launched(first);
        const two = await harness.launched(second);
        assert.notEqual(
          externalIdKey(one.externalId),
          externalIdKey(two.externalId),
          'two launch attempts of a node have the same external id',
        );
        await harness.cleanUp(first, one.externalId, { launchAttempt: first.tags.nodepool_launch_attempt });
        expectEqual(await idsOf(harness), [two.externalId], 'instances after the deletion of the first attempt');
      }),
    },
    {
      id: 'ids.reused-deletion',
      since: '1.4',
      title: 'a deletion does not affect a new instance with the same id',
      text:
        'The kit deletes an instance and launches another one after the first remote call of the deletion, then, in a ' +
        'new cloud, after the second, and so on. The new instance has the id of the deleted one. It survives, and the ' +
        'deletion ends while it exists. After an accepted delete call, a driver sends no second one.',
      needs: ['reused-ids', 'resources', 'times'],
      check: async (context: RuleContext): Promise<void> => {
        let reused = 0;
        for (let calls = 1; calls < MAX_CALLS; calls += 1) {
          const harness = await reusing(context);
          const old = await launchedNode(harness);
          await harness.able('setTimes')({ bootMs: BOOT_MS, deleteMs: 0 });
          const before = harness.process.apiCalls.length;
          const deletion = harness.startCleanUp(old.node, old.externalId);
          const made = (): boolean => harness.process.apiCalls.length >= before + calls;
          await harness.cloud.time.until(() => made() || deletion.settled !== undefined, 2 * DELETION_LIMIT_MS);
          if (!made()) {
            assert.ok(reused > 0, 'the test cloud used no id again, see `TestCloud.reuseIds`');
            return;
          }
          const next = await launchNext(harness, old, deletion, `after ${calls} remote calls of the deletion`);
          if (next) reused += 1;
        }
        assert.fail(`a deletion makes more than ${MAX_CALLS} remote calls`);
      },
    },
    {
      id: 'ids.reused-before',
      since: '1.4',
      title: 'the deletion of a missing instance does not affect its successor',
      text:
        'An instance can be deleted by hand, or by a launcher that crashes afterwards. When the deletion of its node ' +
        'begins, its id may belong to the instance of another node or of another user.',
      needs: ['reused-ids', 'resources', 'destroy-instance', 'foreign-instances'],
      check: async (context: RuleContext): Promise<void> => {
        for (const whose of ['another node', 'another user']) {
          const harness = await reusing(context);
          const old = await launchedNode(harness);
          await harness.able('destroyInstance')(old.externalId);
          if (whose === 'another node') await expectSameId(old.externalId, harness);
          else await harness.able('addForeignInstances')(1);
          await harness.start();
          const what = `the deletion of an instance whose id belongs to ${whose}`;
          await harness.endOf(harness.startCleanUp(old.node, old.externalId), what, DELETION_LIMIT_MS);
          const left = await harness.finish(harness.provider.listNodes(harness.call()));
          expectEqual(
            left.map(({ externalId }) => externalId),
            [old.externalId],
            `instances after ${what}`,
          );
        }
      },
    },
    {
      id: 'ids.reused-launch',
      since: '1.4',
      title: 'a launch that loses its instance fails, and does not return another one with its id',
      text:
        'The instance of a launch disappears while it boots, and another launch gets its id. The first launch fails; it ' +
        'does not return the address of the other node. The same holds for a launch that is resumed with a saved id.',
      needs: ['reused-ids', 'resources', 'destroy-instance', 'times'],
      check: async (context: RuleContext): Promise<void> => {
        for (const isResumed of [false, true]) {
          const harness = await reusing(context);
          await harness.able('setTimes')({ bootMs: BOOT_MS, deleteMs: 0 });
          let launch = harness.launch();
          await harness.pass(BOOT_MS / 2);
          const { saved, node } = launch;
          const [instance] = await harness.instances();
          assert.ok(instance?.externalId !== undefined, 'there is no instance half-way through the boot');
          if (isResumed) await harness.finish(harness.process.stop(), 'the stop of the provider');
          await harness.able('destroyInstance')(instance.externalId);
          if (isResumed) await harness.start();
          const next = harness.launch();
          await harness.pass(1000);
          expectEqual(await idsOf(harness), [instance.externalId], 'ids after the next launch has begun');
          if (isResumed)
            launch = harness.launch(node, { saved: saved?.machine ?? null, externalId: instance.externalId });
          const { code } = await harness.failureOf(launch, 'a launch whose id belongs to another instance');
          assert.notEqual(code, 'timeout', 'the launch waited for its timeout although its instance no longer existed');
          const { externalId } = await harness.endOf(next, 'the launch of the other instance');
          expectEqual(externalId, instance.externalId, 'the id of the other instance');
          await harness.cleanUp(node, instance.externalId);
          expectEqual(await idsOf(harness), [externalId], 'instances after the deletion of the failed launch');
        }
      },
    },
    {
      id: 'ids.reused-leak',
      since: '1.4',
      title: 'a leaked resource whose id belongs to a new instance is not deleted',
      text:
        'Between the listing of resources and the deletion of a leaked one, another launcher may delete it, and its id ' +
        'may be used again.',
      needs: ['reused-ids', 'resources', 'destroy-instance'],
      check: async (context: RuleContext): Promise<void> => {
        const harness = await reusing(context);
        const old = await launchedNode(harness);
        let next: TestNode | undefined;
        const leaked = async (resources: readonly Resource[]): Promise<readonly Resource[]> => {
          await harness.able('destroyInstance')(old.externalId);
          const launch = harness.launch();
          next = launch.node;
          while (launch.settled === undefined) await sleep(harness.cloud.time.clock, LOOK_MS);
          return resources;
        };
        const round = harness.provider.cleanupLeakedResources({ leaked }, harness.call(300_000));
        await harness.ended(watch(round), 'the search for leaks');
        await harness.pass(BOOT_MS);
        const left = (await harness.instances()).map(({ tags }) => tags['nodepool_node_id']);
        expectEqual(left, [next?.id], 'nodes whose instance exists after the round');
      },
    },
  ],
};

interface LaunchedNode {
  readonly node: TestNode;
  readonly externalId: ExternalId;
}

/** Starts a provider on a cloud that uses ids again. */
async function reusing(context: RuleContext): Promise<ProviderHarness> {
  const harness = await context.open();
  await harness.able('reuseIds')();
  await harness.start();
  return harness;
}

async function launchedNode(harness: ProviderHarness): Promise<LaunchedNode> {
  const node = harness.node();
  const { externalId } = await harness.launched(node);
  return { node, externalId };
}

async function idsOf(harness: ProviderHarness): Promise<readonly (ExternalId | undefined)[]> {
  return (await harness.instances()).map(({ externalId }) => externalId);
}

async function expectSameId(externalId: ExternalId, harness: ProviderHarness): Promise<void> {
  const next = await launchedNode(harness);
  expectEqual(next.externalId, externalId, 'the id of a new instance of the test cloud, see `TestCloud.reuseIds`');
}

/** Launches another node while one is being deleted. Resolves with true if it has got the same id. */
async function launchNext(
  harness: ProviderHarness,
  old: LaunchedNode,
  deletion: Watched<void>,
  when: string,
): Promise<boolean> {
  const launch = harness.launch();
  const { node } = launch;
  await harness.endOf(deletion, `a deletion with another launch ${when}`, DELETION_LIMIT_MS);
  const { externalId } = await harness.endOf(launch, `the launch ${when}`);
  const left = (await harness.instances()).map(({ tags }) => tags['nodepool_node_id']);
  expectEqual(left, [node.id], `nodes whose instance exists, with a launch ${when}`);
  await harness.cleanUp(node, externalId);
  await harness.assertNothingLeft('after the deletion of the other node');
  return externalIdKey(externalId) === externalIdKey(old.externalId);
}
