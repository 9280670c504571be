import assert from 'node:assert/strict';
import { expectEqual } from '../expectations.js';
import { handlesNow, handlesSince } from '../handles.js';
import type { RuleGroup } from '../rule.js';
import { fromStart, type RuleContext } from '../rule-context.js';
import { watch } from '../watched.js';

const BOOT_MS = 20_000;

export const stopping: RuleGroup = {
  title: 'Stopping',
  text: '',
  rules: [
    {
      id: 'stop.ends',
      since: '1.0',
      title: 'stopping ends launches and deletions with `AbortedError`',
      text: 'Launches and deletions in progress reject with `AbortedError`, and `join` resolves shortly afterwards.',
      needs: ['times'],
      check: fromStart(async (harness) => {
        await harness.able('setTimes')({ bootMs: BOOT_MS, deleteMs: BOOT_MS });
        const first = harness.node();
        const { externalId } = await harness.launched(first);
        const launch = harness.launch();
        const cleanup = harness.startCleanUp(first, externalId);
        await harness.pass(BOOT_MS / 2);
        harness.provider.stop();
        await harness.failureOf(launch, 'a launch of a provider that was stopped', 'aborted');
        await harness.failureOf(cleanup, 'a deletion of a provider that was stopped', 'aborted');
        const joined = watch(harness.provider.join());
        const done = await harness.cloud.time.until(() => joined.settled !== undefined, 30_000);
        assert.ok(done, 'the provider was stopped, and `join` has not resolved 30 s later');
      }),
    },
    {
      id: 'stop.nothing-after',
      since: '1.0',
      title: 'after `join`, a provider has no calls, timers or tasks',
      text:
        'It makes no remote call and has no timers and no background tasks. An error in background work reaches ' +
        'no caller, so there must be none.',
      needs: ['times'],
      check: fromStart(async (harness) => {
        await harness.able('setTimes')({ bootMs: BOOT_MS, deleteMs: 0 });
        await harness.launched();
        const launch = harness.launch();
        await harness.pass(BOOT_MS / 2);
        const { process } = harness;
        await harness.finish(process.stop(), 'the stop of the provider');
        await harness.failureOf(launch, 'a launch of a provider that was stopped');
        const made = process.apiCalls.length;
        const left = { timers: process.clock.pending, tasks: process.tasks.list().map(({ name }) => name) };
        expectEqual(left, { timers: 0, tasks: [] }, 'timers and tasks that a provider left behind');
        await harness.pass(600_000);
        expectEqual(process.apiCalls.length, made, 'remote calls, ten minutes after the end');
        expectEqual(process.failures, [], 'failures in the background');
      }),
    },
    {
      id: 'stop.unused',
      since: '1.0',
      title: 'an idle provider makes at most one call in ten minutes',
      text:
        'Without launches and deletions, a provider makes no listings and has no periodic timers. A call every ' +
        'ten minutes, e.g. to refresh credentials or limits, is allowed.',
      check: fromStart(async (harness) => {
        const node = harness.node();
        const { externalId } = await harness.launched(node);
        await harness.cleanUp(node, externalId);
        const before = harness.process.apiCalls.length;
        await harness.pass(3_600_000);
        const made = harness.process.apiCalls.length - before;
        assert.ok(made <= 6, `an idle provider made ${made} remote calls within an hour`);
      }),
    },
    {
      id: 'stop.any-time',
      since: '1.0',
      title: 'a provider can be stopped before it was started, and repeatedly',
      text: 'A configuration can be replaced before its providers have started.',
      appliesTo: 'all',
      check: async (context: RuleContext): Promise<void> => {
        const harness = await context.open();
        const unstarted = harness.make();
        await harness.finish(unstarted.stop(), 'the stop of a provider that was never started');
        expectEqual(unstarted.apiCalls.length, 0, 'remote calls of a provider that was never started');
        const process = await harness.start();
        await harness.finish(process.stop(), 'the first stop');
        await harness.finish(process.stop(), 'the second stop');
      },
    },
    {
      id: 'stop.handles',
      since: '1.0',
      title: 'a stopped provider leaves no open handles',
      text:
        'Open sockets, servers and timers of Node.js keep a process from exiting. The kit compares the open ' +
        'handles before the start of cloud and provider with those after their end.',
      check: async (context: RuleContext): Promise<void> => {
        const before = handlesNow();
        const harness = await context.start();
        const node = harness.node();
        const { externalId } = await harness.launched(node);
        await harness.cleanUp(node, externalId);
        await context.end();
        expectEqual(await handlesSince(before), [], 'handles that were left open');
      },
    },
  ],
};
