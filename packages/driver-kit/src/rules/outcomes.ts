import assert from 'node:assert/strict';
import { toDriverError } from '@nodepool/core';
import type { FaultKind } from '../driver-fixture.js';
import { expectCode, expectEqual } from '../expectations.js';
import { describeResource, type ProviderHarness, type TestLaunch } from '../provider-harness.js';
import type { RuleGroup } from '../rule.js';
import { fromStart, type RuleContext } from '../rule-context.js';
import { watch } from '../watched.js';
import { afterEachCall } from './resumption.js';

const TIMES = { bootMs: 3000, deleteMs: 3000 };
const MAX_CALLS = 200;
/** Listing delay (ms): shorter than the time for which any driver tolerates stale listings. */
const LIST_LAG_MS = 4000;

export const outcomes: RuleGroup = {
  title: 'Identity and unknown outcomes',
  text: 'After a timeout, a broken connection or a 5xx, a call may have taken effect, or still may.',
  rules: [
    {
      id: 'tags.from-creation',
      since: '1.0',
      title: 'the call that creates a resource sets all `InstanceTags`, or a name with the same content',
      text:
        'The call that creates an instance, or any other resource of a node, also sets all tags of ' +
        '`InstanceTags`. If a second call added them, a crash between the two calls would leave a resource ' +
        'without an owner. If the cloud cannot tag such a resource at its creation, the driver encodes the same ' +
        'information in its name; `resources()` of the test cloud returns it as tags.',
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
      title: 'an instance whose creation got no answer is found by its tags, not created again',
      text:
        'If the answer to a creation is lost, the driver searches the cloud for the tag of the attempt, and the ' +
        'launch continues with the instance that it finds. A driver that implements `Provider` itself may instead ' +
        'reject with an error whose outcome is not `not-applied`. It must neither create a second instance nor ' +
        'report `not-applied`.',
      needs: ['fault:create:lose-answer'],
      check: fromStart(async (harness) => {
        await harness.plan('create', 'lose-answer');
        const launch = harness.launch();
        await harness.ended(launch, 'the launch');
        const existing = await harness.instances();
        expectEqual(existing.length, 1, 'instances after a creation whose answer was lost');
        if (launch.settled?.ok === true) {
          expectEqual(
            existing[0]?.externalId,
            launch.settled.value.externalId,
            'the external id that the launch returned',
          );
          return;
        }
        const { outcome } = await harness.failureOf(launch, 'the launch');
        assert.notEqual(outcome, 'not-applied', 'the outcome of the launch’s error, although an instance exists');
      }),
    },
    {
      id: 'outcome.create-lost-lag',
      since: '1.0',
      title: 'several listings over some seconds, not one, prove that nothing was created',
      text:
        'Listings lag behind. After a creation without an answer, one listing without the instance proves ' +
        'nothing. Several listings over some seconds must agree; `attemptLookup` and `ListingDeadline` of core ' +
        'implement this.',
      needs: ['fault:create:lose-answer', 'list-lag', 'resources'],
      check: fromStart(async (harness) => {
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
        if (launch.settled?.ok === true) return;
        const { outcome } = await harness.failureOf(launch, 'the launch');
        assert.notEqual(
          outcome,
          'not-applied',
          `the outcome of the error, after only one listing without the instance`,
        );
      }),
    },
    {
      id: 'outcome.create-refused',
      since: '1.0',
      title: 'a creation that failed with a server error is searched for, not repeated',
      text:
        'A cloud can answer 5xx before or after it has done the work. If the search finds nothing, the launch ' +
        'rejects with an error whose outcome is `not-applied`, and the launcher starts a new attempt. An instance ' +
        'that appears late can then be distinguished from the wanted one by its attempt.',
      needs: ['fault:create:refuse', 'resources'],
      check: fromStart(async (harness) => {
        await harness.plan('create', 'refuse');
        const error = await harness.failureOf(
          harness.launch(),
          'a launch whose creation met an internal error of the cloud',
          'transient',
          'timeout',
        );
        expectEqual(error.outcome, 'not-applied', `the outcome of "${error.message}"`);
        await harness.assertNothingLeft('after a creation that failed');
      }),
    },
    {
      id: 'outcome.create-hangs',
      since: '1.0',
      title: 'a creation without an answer ends at the deadline of the launch',
      text:
        'No call waits forever. The error may come from a timeout of the call or from the deadline of the launch; ' +
        'in both cases there is no second instance.',
      needs: ['fault:create:hang', 'resources'],
      check: fromStart(async (harness) => {
        await harness.plan('create', 'hang');
        await harness.failureOf(harness.launch(), 'a launch whose creation is never answered', 'timeout', 'transient');
        await harness.assertNothingLeft('after a creation that was never answered, and did nothing');
      }),
    },
    {
      id: 'outcome.any-call',
      since: '1.0',
      title: 'at most one instance exists after any lost answer',
      text:
        'The kit loses the answer to the first call of a launch, then, in a new cloud, to the second, and so on. ' +
        'However the launch ends, the deletion of its node leaves no resource.',
      needs: ['fault:any:lose-answer', 'resources'],
      check: async (context: RuleContext): Promise<void> => {
        const lose: CallFault = { kind: 'lose-answer', text: (number) => `lost the answer to call ${number}` };
        await launchesDespite(context, lose);
      },
    },
    {
      id: 'outcome.delete-lost',
      since: '1.0',
      title: 'a deletion whose answer is lost succeeds',
      text:
        'A deletion can safely be repeated, so the driver repeats it. If the instance no longer exists by then, ' +
        'the deletion has succeeded.',
      needs: ['fault:delete:lose-answer'],
      check: fromStart(async (harness) => {
        const node = harness.node();
        const { externalId } = await harness.launched(node);
        await harness.plan('delete', 'lose-answer');
        await harness.cleanUp(node, externalId);
        await harness.assertNothingLeft('after the deletion');
      }),
    },
    {
      id: 'outcome.delete-refused',
      since: '1.0',
      title: 'a deletion is retried after temporary errors',
      text:
        'Internal errors and throttling are temporary. A deletion ends when the instance is deleted, or at its ' +
        'deadline.',
      needs: ['fault:delete:refuse'],
      check: fromStart(async (harness) => {
        const node = harness.node();
        const { externalId } = await harness.launched(node);
        await harness.plan('delete', 'refuse');
        await harness.cleanUp(node, externalId);
        await harness.assertNothingLeft('after the deletion');
      }),
    },
    {
      id: 'outcome.delete-proxy-404',
      since: '1.3',
      title: 'a 404 of a proxy does not prove a deletion',
      text:
        'A proxy in front of the cloud may answer with 404 while the instance exists. Only a 404 in the format of ' +
        'the cloud proves that there is no such instance; the driver treats any other one as an error that may ' +
        'pass. The kit sends the proxy’s answer to the first call of a deletion, then, in a new cloud, to the ' +
        'second, and so on.',
      needs: ['fault:any:proxy-404', 'resources'],
      check: async (context: RuleContext): Promise<void> => {
        await deletesDespite(context, {
          kind: 'proxy-404',
          text: (number) => `got a 404 of a proxy to call ${number}`,
        });
      },
    },
    {
      id: 'outcome.proxy-200',
      since: '1.3',
      title: 'a page of a proxy with status 200 is a temporary error, not an answer',
      text:
        'A proxy in front of the cloud may answer with status 200 and a page of its own, e.g. a login form. A list ' +
        'then fails; it does not lack instances. A launch fails with an error that may pass, or succeeds with an ' +
        'instance. A deletion repeats the call. The kit sends the page to the first call of a list, and to each call ' +
        'of a launch and of a deletion, each time in a new cloud.',
      needs: ['fault:any:proxy-200', 'resources'],
      check: async (context: RuleContext): Promise<void> => {
        await noAnswerOfTheCloud(context, 'proxy-200', 'a page of a proxy');
      },
    },
    {
      id: 'outcome.proxy-json',
      since: '1.3',
      title: 'JSON of a proxy with status 200 is a temporary error, too',
      text:
        'A proxy may also answer with JSON of its own, e.g. `{"message": "sign in"}`. Such an object is not a list ' +
        'without instances, and neither a creation nor a deletion. The kit sends it like the page above.',
      needs: ['fault:any:proxy-json', 'resources'],
      check: async (context: RuleContext): Promise<void> => {
        await noAnswerOfTheCloud(context, 'proxy-json', 'JSON of a proxy');
      },
    },
    {
      id: 'lag.launch',
      since: '1.0',
      title: 'a new instance that is not listed yet is not lost',
      text:
        'If the cloud has confirmed the creation, the instance exists, even if listings do not contain it for ' +
        'some seconds.',
      needs: ['list-lag', 'times'],
      check: fromStart(async (harness) => {
        await harness.able('setListLag')(LIST_LAG_MS);
        await harness.able('setTimes')({ bootMs: 2000, deleteMs: 0 });
        await harness.launched();
      }),
    },
    {
      id: 'lag.delete',
      since: '1.0',
      title: 'a 404 or several listings over some seconds, not one, prove a deletion',
      text:
        'Listings may not yet contain an instance that was created a moment ago, even while it is being deleted. ' +
        'The deletion is complete only when the cloud has confirmed it: with a 404 for the instance, or with ' +
        'several listings, over some seconds, that do not contain it.',
      needs: ['list-lag', 'times', 'resources'],
      check: fromStart(async (harness) => {
        // The instance can be ready before listings contain it only if the answer to the creation says so.
        await harness.able('setTimes')({ bootMs: 60_000, deleteMs: LIST_LAG_MS / 2 });
        await harness.able('setListLag')(LIST_LAG_MS);
        const controller = new AbortController();
        const launch = harness.launch(harness.node(), { signal: controller.signal });
        await harness.cloud.time.until(() => launch.saved !== undefined, LIST_LAG_MS / 4);
        const [instance] = await harness.instances();
        assert.ok(instance?.externalId !== undefined, 'there is no instance although a launch has started');
        controller.abort(new Error('it was aborted by the test'));
        await harness.cleanUp(launch.node, instance.externalId);
        await harness.assertNothingLeft('when the deletion of a new instance had completed');
      }),
    },
    {
      id: 'lag.delete-unknown',
      since: '1.0',
      title: 'without `externalId`, one listing does not prove a deletion either',
      text:
        'The deletion of a node without `externalId` searches for the node’s tags. Listings may not yet contain ' +
        'an instance that a crashed launcher created a moment ago.',
      needs: ['list-lag', 'times', 'resources'],
      check: fromStart(async (harness) => {
        await harness.able('setTimes')({ bootMs: 60_000, deleteMs: 1000 });
        await harness.able('setListLag')(LIST_LAG_MS);
        const controller = new AbortController();
        const launch = harness.launch(harness.node(), { signal: controller.signal });
        await harness.cloud.time.until(() => launch.saved !== undefined, LIST_LAG_MS / 4);
        controller.abort(new Error('it was aborted by the test'));
        expectEqual((await harness.instances()).length, 1, 'there is no instance although a launch has started');
        await harness.cleanUp(launch.node, null);
        await harness.assertNothingLeft('after the deletion of a node whose instance was not listed yet');
      }),
    },
  ],
};

async function deleteLaunched(harness: ProviderHarness, { node, settled, saved }: TestLaunch): Promise<void> {
  const externalId = settled?.ok === true ? settled.value.externalId : (saved?.externalId ?? null);
  await harness.cleanUp(node, externalId);
}

/** A fault of one call. */
interface CallFault {
  readonly kind: FaultKind;
  /** For messages: what a launch or deletion with the fault in this call encountered. */
  readonly text: (number: number) => string;
}

/** Launches and deletes an instance in a new cloud for each call of the launch, which gets the fault. */
async function launchesDespite(
  context: RuleContext,
  { kind, text }: CallFault,
  check: (launch: TestLaunch, instances: number, when: string) => void = () => undefined,
): Promise<void> {
  for (let skip = 0; skip < MAX_CALLS; skip += 1) {
    const harness = await context.start();
    await harness.cloud.setTimes?.(TIMES);
    const before = harness.process.apiCalls.length;
    await harness.plan('any', kind, skip);
    const launch = harness.launch();
    await harness.ended(launch, 'the launch');
    const when = `after a launch that ${text(skip + 1)}`;
    const instances = await harness.instances();
    assert.ok(
      instances.length <= 1,
      `${when}, there is more than one instance: ${instances.map(describeResource).join('; ')}`,
    );
    // If the fault was not triggered, it is still planned and must be left to the next case.
    if (harness.process.apiCalls.length - before <= skip) return;
    check(launch, instances.length, when);
    await harness.start();
    await deleteLaunched(harness, launch);
    await harness.assertNothingLeft(`${when}, and its deletion`);
  }
  assert.fail(`a launch makes more than ${MAX_CALLS} remote calls`);
}

/** Fails if an answer of a proxy with status 200 counts as one of the cloud. `answer` describes it in messages. */
async function noAnswerOfTheCloud(context: RuleContext, kind: FaultKind, answer: string): Promise<void> {
  const harness = await context.start();
  await harness.launched();
  await harness.plan('any', kind);
  const what = `a list whose first call got ${answer}`;
  const list = watch(harness.provider.listNodes(harness.call()));
  await harness.ended(list, what);
  // A driver that watches the cloud may answer without a call.
  if (list.settled?.ok === true) assert.ok(list.settled.value.length > 0, `${what} is empty`);
  else await harness.failureOf(list, what, 'transient');
  const fault: CallFault = { kind, text: (number) => `got ${answer} to call ${number}` };
  await launchesDespite(context, fault, ({ settled }, instances, when) => {
    if (settled?.ok === true) assert.equal(instances, 1, `${when} and succeeded, no instance exists`);
    else expectCode(toDriverError(settled?.error), ['transient'], when.replace('after ', ''));
  });
  await deletesDespite(context, fault);
}

/** Deletes an instance in a new cloud for each call of the deletion, which gets the fault. */
async function deletesDespite(context: RuleContext, { kind, text }: CallFault): Promise<void> {
  for (let skip = 0; skip < MAX_CALLS; skip += 1) {
    const harness = await context.start();
    await harness.cloud.setTimes?.(TIMES);
    const node = harness.node();
    const { externalId } = await harness.launched(node);
    const before = harness.process.apiCalls.length;
    await harness.plan('any', kind, skip);
    await harness.cleanUp(node, externalId);
    await harness.assertNothingLeft(`after a deletion that ${text(skip + 1)}`);
    if (harness.process.apiCalls.length - before <= skip) return;
  }
  assert.fail(`a deletion makes more than ${MAX_CALLS} remote calls`);
}
