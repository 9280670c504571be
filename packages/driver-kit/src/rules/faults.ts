import assert from 'node:assert/strict';
import { isDriverError } from '@nodepool/core';
import type { FaultKind } from '../driver-fixture.js';
import { expectEqual, notDriverError } from '../expectations.js';
import { describeResource, type ProviderHarness, type TestLaunch } from '../provider-harness.js';
import type { RuleGroup } from '../rule.js';
import type { RuleContext } from '../rule-context.js';
import { watch } from '../watched.js';

const TIMES = { bootMs: 500, deleteMs: 500 };
/** Maximum number of calls of a launch, a deletion or a listing. */
const MAX_CALLS = 100;
/** Number of foreign instances: more than one page of any test cloud holds. */
const FOREIGN = 7;
/** Time limit of a listing (ms). */
const LIST_TIMEOUT_MS = 60_000;

/** Kinds of faults that any call can have. Other rules check lost answers and answers of proxies. */
const ANY_CALL = ['refuse', 'fail-after', 'throttle', 'conflict', 'auth', 'hang'] as const;
const ANY_PAGE = [
  'not-found',
  'fail-after',
  'lose-answer',
  'throttle',
  'conflict',
  'auth',
  'hang',
  'proxy-404',
  'proxy-200',
  'proxy-json',
] as const;

export const faults: RuleGroup = {
  title: 'Every fault at every call',
  text: 'Each call fails in each way that the test cloud can simulate.',
  rules: [
    {
      id: 'faults.launch',
      since: '1.4',
      title: 'a launch ends with its only instance or a `DriverError`, `not-applied` only if no instance exists',
      text:
        'The outcome of an error is that of the creation, not of the call that failed. A poll that is throttled after ' +
        'the cloud has accepted the creation, or a 500 after the effect, does not mean that nothing was created. A ' +
        'launch succeeds with its only instance, or rejects with a `DriverError`; if its outcome is `not-applied`, no ' +
        'instance exists. The deletion of the node then leaves no resource.',
      needs: ['fault:any:fail-after', 'resources'],
      uses: ANY_CALL.map((kind) => `fault:any:${kind}` as const),
      check: (context: RuleContext) =>
        forEachFault(context, async (harness, plan, when) => {
          const before = harness.process.apiCalls.length;
          await plan();
          const launch = harness.launch();
          await harness.ended(launch, `a launch ${when}`);
          const calls = harness.process.apiCalls.length - before;
          await harness.cloud.clearFaults?.();
          await expectOutcome(harness, launch, `after a launch ${when}`);
          const { settled, saved, node } = launch;
          const externalId = settled?.ok === true ? settled.value.externalId : (saved?.externalId ?? null);
          await harness.cleanUp(node, externalId);
          await harness.assertNothingLeft(`after a launch ${when}, and its deletion`);
          return calls;
        }),
    },
    {
      id: 'faults.deletion',
      since: '1.4',
      title: 'a deletion continues after temporary errors, and a fault, e.g. 409, is no deletion',
      text:
        'A deletion continues after every temporary error. In particular, a conflict (409) does not mean that the ' +
        'instance is deleted: the cloud may be busy with another operation on it. Refused credentials may end a ' +
        'deletion with an error; the launcher repeats it.',
      needs: ['fault:any:fail-after', 'resources'],
      uses: ANY_CALL.map((kind) => `fault:any:${kind}` as const),
      check: (context: RuleContext) =>
        forEachFault(context, async (harness, plan, when, kind) => {
          const node = harness.node();
          const { externalId } = await harness.launched(node);
          const before = harness.process.apiCalls.length;
          await plan();
          const deletion = harness.startCleanUp(node, externalId);
          await harness.ended(deletion, `a deletion ${when}`);
          const calls = harness.process.apiCalls.length - before;
          if (deletion.settled?.ok === false) {
            const { code } = await harness.failureOf(deletion, `a deletion ${when}`);
            assert.ok(kind === 'auth' && code === 'auth', `a deletion ${when} failed with the code "${code}"`);
            await harness.cloud.clearFaults?.();
            await harness.cleanUp(node, externalId);
          }
          await harness.assertNothingLeft(`after a deletion ${when}`);
          return calls;
        }),
    },
    {
      id: 'faults.listing',
      since: '1.4',
      title: 'a listing is complete or fails, also if a page is a 404',
      text:
        'As `list.rejected`, for every kind of fault. A page that the cloud answers with 404, e.g. because its marker ' +
        'was deleted, is not an empty page.',
      needs: ['foreign-instances', 'fault:list:not-found'],
      uses: ANY_PAGE.map((kind) => `fault:list:${kind}` as const),
      check: async (context: RuleContext): Promise<void> => {
        const clouds = new Clouds(context, async (harness) => harness.able('addForeignInstances')(FOREIGN));
        for (const kind of ANY_PAGE) {
          if (!context.fixture.can.includes(`fault:list:${kind}`)) continue;
          for (let page = 0, pages = Infinity; page < pages; page += 1) {
            assert.ok(page < MAX_CALLS, `the list has more than ${MAX_CALLS} pages`);
            const harness = await clouds.next();
            const before = harness.process.apiCalls.length;
            await harness.plan('list', kind, page);
            const list = watch(harness.provider.listNodes(harness.call(LIST_TIMEOUT_MS)));
            const what = `a list of which page ${page + 1} got the fault "${kind}"`;
            await harness.ended(list, what);
            const calls = harness.process.apiCalls.length - before;
            if (list.settled?.ok === true) {
              expectEqual(list.settled.value.length, FOREIGN, `instances in ${what}`);
              if (calls <= page) pages = page;
            } else await harness.failureOf(list, what);
          }
        }
      },
    },
  ],
};

/** The clouds of a rule: a new one for each case, or the same for all if it can remove planned faults. */
class Clouds {
  private harness: ProviderHarness | undefined;

  constructor(
    private readonly context: RuleContext,
    private readonly prepare: (harness: ProviderHarness) => Promise<void>,
  ) {}

  /** Returns a cloud without planned faults, with a provider. */
  async next(): Promise<ProviderHarness> {
    if (this.harness?.cloud.clearFaults !== undefined) {
      await this.harness.cloud.clearFaults();
      // After refused credentials, a driver logs in again.
      await this.harness.ours();
      return this.harness;
    }
    await this.context.end();
    this.harness = await this.context.start();
    await this.prepare(this.harness);
    return this.harness;
  }
}

/** Runs `work` with a fault of its first call, then of its second, and so on, until it makes fewer calls. */
async function forEachFault(
  context: RuleContext,
  work: (harness: ProviderHarness, plan: () => Promise<void>, when: string, kind: FaultKind) => Promise<number>,
): Promise<void> {
  const clouds = new Clouds(context, async (harness) => harness.cloud.setTimes?.(TIMES));
  for (const kind of ANY_CALL) {
    if (!context.fixture.can.includes(`fault:any:${kind}`)) continue;
    for (let skip = 0, calls = Infinity; skip < calls; skip += 1) {
      assert.ok(skip < MAX_CALLS, `it makes more than ${MAX_CALLS} remote calls`);
      const harness = await clouds.next();
      const when = `whose call ${skip + 1} got the fault "${kind}"`;
      const made = await work(harness, () => harness.plan('any', kind, skip), when, kind);
      if (made <= skip) calls = skip;
    }
  }
}

async function expectOutcome(harness: ProviderHarness, { settled, node }: TestLaunch, when: string): Promise<void> {
  const existing = await harness.instances();
  assert.ok(existing.length <= 1, `${when}, there are several instances: ${existing.map(describeResource).join('; ')}`);
  if (settled?.ok === true) {
    expectEqual(
      existing.map(({ tags }) => tags['nodepool_node_id']),
      [node.id],
      `${when}, nodes with an instance`,
    );
    return;
  }
  const error = settled?.error;
  assert.ok(isDriverError(error), notDriverError(when, error));
  assert.ok(error.code !== 'unexpected', `${when}, the error has no code: ${error.message}`);
  assert.ok(
    error.outcome !== 'not-applied' || existing.length === 0,
    `${when}, the outcome is "not-applied", although an instance exists: ${error.message}`,
  );
}
