/** Rules about the identity of created resources, and about calls with an unknown outcome. */

import assert from 'node:assert/strict';
import { expectEqual } from '../expectations.js';
import { describeResource, type ProviderHarness, type TestLaunch } from '../provider-harness.js';
import type { RuleGroup } from '../rule.js';
import type { RuleContext } from '../rule-context.js';
import { afterEachCall } from './resumption.js';

const TIMES = { bootMs: 3000, deleteMs: 3000 };
const MOST_CALLS = 200;
/** Listing delay (ms): shorter than the time for which any driver tolerates stale listings. */
const LIST_LAG_MS = 4000;

export const outcomes: RuleGroup = {
  title: 'Identity, and unknown outcomes',
  text:
    'A time-out, a connection that is cut, a 5xx: the call may have taken effect or not, and may still do. Everything that is made carries the identity of its launch attempt from the ' +
    'moment of its creation, so that one can look, instead of trying again and paying twice.',
  rules: [
    {
      id: 'tags.from-creation',
      since: '1.0',
      title: 'everything that is made for a node carries its tags from its creation',
      text:
        'Instances, and whatever else is made for a node, carry all tags of `InstanceTags` in the very call that makes them. Tags that a second call adds are not there when the ' +
        'launcher dies, or the cloud breaks down, between the two: then the owner of the resource is unknown. Resources that a cloud gives no tags at creation need another ' +
        'name that says the same; `resources()` of the test cloud shows it as tags.',
      needs: ['resources'],
      check: async (context: RuleContext): Promise<void> => {
        await afterEachCall(context, async (harness, { node }, when) => {
          for (const resource of await harness.existing()) {
            for (const [tag, value] of Object.entries(node.tags)) {
              expectEqual(resource.tags[tag], value, `${when} of a launch, the tag ${tag} of the ${resource.kind}`);
            }
          }
        });
      },
    },
    {
      id: 'outcome.create-lost',
      since: '1.0',
      title: 'an instance whose creation got no answer is found, not made again',
      text:
        'When the answer to a creation is lost, the cloud is searched for the tag of the attempt. The launch goes on with what is found. A driver that implements ' +
        '`Provider` itself may reject instead, with an error whose outcome is not `not-applied`; what it must never do is to create once more, or to say `not-applied`.',
      needs: ['fault:create:lose-answer'],
      check: async (context: RuleContext): Promise<void> => {
        const harness = await context.start();
        await harness.plan('create', 'lose-answer');
        const launch = harness.launch();
        await harness.ended(launch, 'the launch');
        const existing = await harness.instances();
        expectEqual(existing.length, 1, 'instances after a creation whose answer was lost');
        if (launch.ending?.ok === true) {
          expectEqual(
            existing[0]?.externalId,
            launch.ending.value.externalId,
            'the launch ended with another instance than exists',
          );
          return;
        }
        const { outcome } = await harness.failureOf(launch, 'the launch');
        assert.notEqual(
          outcome,
          'not-applied',
          'an instance exists, and the launch failed with an error that says that there is none; its outcome',
        );
      },
    },
    {
      id: 'outcome.create-lost-lag',
      since: '1.0',
      title: 'a list that does not show a new instance yet is no proof that there is none',
      text:
        'Lists lag behind. After a creation without an answer, one list without the instance says nothing: several, over some seconds, have to agree ' +
        '(`attemptLookup` and `ListingPatience` of core do that).',
      needs: ['fault:create:lose-answer', 'list-lag', 'resources'],
      check: async (context: RuleContext): Promise<void> => {
        const harness = await context.start();
        await harness.able('setListLag')(LIST_LAG_MS);
        await harness.plan('create', 'lose-answer');
        const launch = harness.launch();
        await harness.ended(launch, 'the launch');
        const existing = (await harness.instances()).length;
        expectEqual(
          existing,
          1,
          `instances after a creation whose answer was lost, with a list that lags by ${LIST_LAG_MS} ms`,
        );
        if (launch.ending?.ok === true) return;
        const { outcome } = await harness.failureOf(launch, 'the launch');
        assert.notEqual(
          outcome,
          'not-applied',
          `one list without the instance was taken for proof; the outcome of the error`,
        );
      },
    },
    {
      id: 'outcome.create-refused',
      since: '1.0',
      title: 'a creation that failed on the side of the cloud is looked for, and not made again under the same attempt',
      text:
        'A 5xx may come before or after the work. When the search finds nothing, the launch is rejected with an error whose outcome is `not-applied`, and the launcher tries again with a new attempt: only so ' +
        'can a twin that shows up late be told from the instance that is wanted.',
      needs: ['fault:create:refuse', 'resources'],
      check: async (context: RuleContext): Promise<void> => {
        const harness = await context.start();
        await harness.plan('create', 'refuse');
        const error = await harness.failureOf(
          harness.launch(),
          'a launch whose creation met an internal error of the cloud',
          'transient',
          'timeout',
        );
        expectEqual(error.outcome, 'not-applied', `the outcome of "${error.message}"`);
        await harness.assertNothingLeft('after a creation that failed');
      },
    },
    {
      id: 'outcome.create-hangs',
      since: '1.0',
      title: 'a creation that is never answered ends the launch at its deadline at the latest',
      text: 'No call waits for ever. Whether the error comes from a time-out of the call or from the deadline of the launch, there is no second instance.',
      needs: ['fault:create:hang', 'resources'],
      check: async (context: RuleContext): Promise<void> => {
        const harness = await context.start();
        await harness.plan('create', 'hang');
        await harness.failureOf(harness.launch(), 'a launch whose creation is never answered', 'timeout', 'transient');
        await harness.assertNothingLeft('after a creation that was never answered, and did nothing');
      },
    },
    {
      id: 'outcome.any-call',
      since: '1.0',
      title: 'whichever answer is lost, there is at most one instance, and the node can be deleted',
      text: 'The kit loses the answer to the first call of a launch, then to the second, and so on. However the launch ends, its deletion leaves nothing.',
      needs: ['fault:any:lose-answer', 'resources'],
      check: async (context: RuleContext): Promise<void> => {
        for (let skip = 0; skip < MOST_CALLS; skip += 1) {
          const harness = await context.start();
          await harness.cloud.setTimes?.(TIMES);
          const before = harness.process.apiCalls.length;
          await harness.plan('any', 'lose-answer', skip);
          const launch = harness.launch();
          await harness.ended(launch, 'the launch');
          const when = `after a launch that lost the answer to call ${skip + 1}`;
          const instances = await harness.instances();
          assert.ok(
            instances.length <= 1,
            `${when}, there is more than one instance: ${instances.map(describeResource).join('; ')}`,
          );
          // If the fault was not triggered, it is still planned and must be left to the next case.
          if (harness.process.apiCalls.length - before <= skip) return;
          await harness.start();
          await deleteLaunched(harness, launch);
          await harness.assertNothingLeft(`${when}, and its deletion`);
        }
        assert.fail(`a launch makes more than ${MOST_CALLS} remote calls`);
      },
    },
    {
      id: 'outcome.delete-lost',
      since: '1.0',
      title: 'a deletion whose answer is lost succeeds',
      text: 'Deleting is safe to repeat, so it is repeated; that the instance is gone by then is a success.',
      needs: ['fault:delete:lose-answer'],
      check: async (context: RuleContext): Promise<void> => {
        const harness = await context.start();
        const node = harness.node();
        const { externalId } = await harness.launched(node);
        await harness.plan('delete', 'lose-answer');
        await harness.cleanUp(node, externalId);
        await harness.assertNothingLeft('after the deletion');
      },
    },
    {
      id: 'outcome.delete-refused',
      since: '1.0',
      title: 'a deletion that the cloud refuses for the moment is tried again',
      text: 'Internal errors and throttling pass. A deletion ends when the instance is gone, or at its deadline.',
      needs: ['fault:delete:refuse'],
      check: async (context: RuleContext): Promise<void> => {
        const harness = await context.start();
        const node = harness.node();
        const { externalId } = await harness.launched(node);
        await harness.plan('delete', 'refuse');
        await harness.cleanUp(node, externalId);
        await harness.assertNothingLeft('after the deletion');
      },
    },
    {
      id: 'lag.launch',
      since: '1.0',
      title: 'a new instance that is not listed yet is not taken for lost',
      text: 'An instance whose creation was answered exists, whatever the lists of the next seconds say.',
      needs: ['list-lag', 'times'],
      check: async (context: RuleContext): Promise<void> => {
        const harness = await context.start();
        await harness.able('setListLag')(LIST_LAG_MS);
        await harness.able('setTimes')({ bootMs: 2000, deleteMs: 0 });
        await harness.launched();
      },
    },
    {
      id: 'lag.delete',
      since: '1.0',
      title: 'a list without the instance, right after its creation or deletion, is no proof that it is gone',
      text:
        'An instance that was created a moment ago is not in the list yet, also while its deletion is still under way. The record of a node is removed only after the cloud confirmed that the instance is ' +
        'gone: it answers 404 for it, or a series of lists, over some seconds, agree that it is not there.',
      needs: ['list-lag', 'times', 'resources'],
      check: async (context: RuleContext): Promise<void> => {
        const harness = await context.start();
        // The instance can be ready before listings contain it only if the answer to the creation says so.
        await harness.able('setTimes')({ bootMs: 60_000, deleteMs: LIST_LAG_MS / 2 });
        await harness.able('setListLag')(LIST_LAG_MS);
        const controller = new AbortController();
        const launch = harness.launch(harness.node(), { signal: controller.signal });
        await harness.cloud.time.until(() => launch.saved !== undefined, LIST_LAG_MS / 4);
        const [instance] = await harness.instances();
        assert.ok(instance?.externalId !== undefined, 'a launch was begun, and there is no instance yet');
        controller.abort(new Error('it was aborted by the test'));
        await harness.cleanUp(launch.node, instance.externalId);
        await harness.assertNothingLeft('in the moment in which the deletion of a just created instance was over');
      },
    },
    {
      id: 'lag.delete-unknown',
      since: '1.0',
      title: 'a node whose instance is not known is not given up after one list without it',
      text: 'The deletion of a node without `externalId` looks for its tags. An instance that was made a moment ago, by a launcher that is no more, may not be listed yet.',
      needs: ['list-lag', 'times', 'resources'],
      check: async (context: RuleContext): Promise<void> => {
        const harness = await context.start();
        await harness.able('setTimes')({ bootMs: 60_000, deleteMs: 1000 });
        await harness.able('setListLag')(LIST_LAG_MS);
        const controller = new AbortController();
        const launch = harness.launch(harness.node(), { signal: controller.signal });
        await harness.cloud.time.until(() => launch.saved !== undefined, LIST_LAG_MS / 4);
        controller.abort(new Error('it was aborted by the test'));
        expectEqual((await harness.instances()).length, 1, 'a launch was begun, and there is no instance yet');
        await harness.cleanUp(launch.node, null);
        await harness.assertNothingLeft('after the deletion of a node whose instance was not listed yet');
      },
    },
  ],
};

async function deleteLaunched(harness: ProviderHarness, { node, ending, saved }: TestLaunch): Promise<void> {
  const externalId = ending?.ok === true ? ending.value.externalId : (saved?.externalId ?? null);
  await harness.cleanUp(node, externalId);
}
