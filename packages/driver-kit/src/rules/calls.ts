import assert from 'node:assert/strict';
import { setMaxListeners } from 'node:events';
import type { Advance, StateMachine } from '@nodepool/core';
import { expectEqual } from '../expectations.js';
import type { ProviderHarness } from '../provider-harness.js';
import { longestBlock } from '../event-loop.js';
import { StateMachineRunner } from '../state-machine-runner.js';
import type { RuleGroup } from '../rule.js';
import { fromStart, type RuleContext } from '../rule-context.js';
import { watch, type Watched } from '../watched.js';

const BOOT_MS = 20_000;
/** Time after which a launch or a deletion has sent its call (ms): a deletion may begin with a listing. */
const STARTED_MS = 10_000;
/** Time limit for an aborted call to end (ms). */
const END_MS = 10_000;
/** A turn of the event loop that takes longer counts as blocked (ms of real time). */
const BLOCK_MS = 200;
/** Number of measurements. A busy machine delays single turns; a blocking driver delays every one. */
const BLOCK_ROUNDS = 6;

export const calls: RuleGroup = {
  title: 'Remote calls',
  text: '',
  rules: [
    {
      id: 'calls.reported',
      since: '1.0',
      title: 'every remote call is reported to `onApiCall` when it has ended',
      text:
        'The driver calls `ProviderContext.onApiCall` for each remote call with its service, method, operation, ' +
        'duration and status. The metrics depend on it, and so does this kit, which stops drivers between two ' +
        'calls.',
      check: fromStart(async (harness) => {
        const node = harness.node();
        const { externalId } = await harness.launched(node);
        const forLaunch = harness.process.apiCalls.length;
        assert.ok(forLaunch > 0, 'no remote call was reported during a launch');
        await harness.cleanUp(node, externalId);
        assert.ok(harness.process.apiCalls.length > forLaunch, 'no remote call was reported during a deletion');
        for (const { service, method, operation, durationMs } of harness.process.apiCalls) {
          assert.ok(
            service !== '' && method !== '' && operation !== '',
            'a call was reported without service, method or operation',
          );
          assert.ok(durationMs >= 0, `a call was reported with a duration of ${durationMs} ms`);
        }
      }),
    },
    {
      id: 'calls.shared-list',
      since: '1.0',
      title: 'concurrent launches share listings',
      text:
        'A thousand waiting launches need one listing per round, not a thousand. Ten concurrent launches make ' +
        'hardly more calls while they boot than a single one.',
      needs: ['times'],
      check: async (context: RuleContext): Promise<void> => {
        const perLaunch = async (count: number): Promise<number> => {
          const harness = await context.start();
          await harness.able('setTimes')({ bootMs: BOOT_MS, deleteMs: 0 });
          const before = harness.process.apiCalls.length;
          const launches = Array.from({ length: count }, () => harness.launch());
          for (const launch of launches) await harness.endOf(launch, `the launch of node ${launch.node.id}`);
          return (harness.process.apiCalls.length - before) / count;
        };
        const alone = await perLaunch(1);
        const together = await perLaunch(10);
        // A driver makes two or three calls during a boot in any case, which is too few to judge.
        assert.ok(
          alone < 8 || together <= alone / 2,
          `one launch makes ${alone} remote calls, ten concurrent launches ${together} each`,
        );
      },
    },
    {
      id: 'calls.aborted-before',
      since: '1.0',
      title: 'a call whose signal is already aborted is not made',
      text: 'It rejects with `AbortedError` and has no effect in the cloud.',
      check: fromStart(async (harness) => {
        const signal = AbortSignal.abort(new Error('it was aborted by the test'));
        const launch = harness.launch(harness.node(), { signal });
        await harness.failureOf(launch, 'a launch whose signal had aborted before', 'aborted');
        const listing = harness.provider.listNodes(harness.call(60_000, signal));
        await harness.failureOf(listing, 'a list whose signal had aborted before', 'aborted');
        expectEqual((await harness.instances()).length, 0, 'instances after a launch that was aborted before it began');
      }),
    },
    {
      id: 'calls.abort',
      since: '1.0',
      title: 'a call rejects with `AbortedError` when its signal aborts',
      text:
        'The driver cancels the remote call and rejects with `AbortedError`. With the state-machine framework, ' +
        'the kit tests the adapter itself: the framework abandons the call in any case, but an adapter that ' +
        'continues it occupies a connection or a place in a queue.',
      needs: ['fault:list:hang'],
      check: async (context: RuleContext): Promise<void> => {
        const { harness, list } = await listingOf(context.fixture.can.includes('adapter'), await context.open());
        await harness.plan('list', 'hang');
        const controller = new AbortController();
        const listing = watch(list(controller.signal, 300_000));
        await harness.pass(1000);
        expectEqual(listing.settled, undefined, 'a list that the cloud does not answer has ended');
        const began = harness.cloud.time.clock.monotonic();
        controller.abort(new Error('it was aborted by the test'));
        await harness.failureOf(listing, 'a list that was aborted', 'aborted');
        const took = harness.cloud.time.clock.monotonic() - began;
        assert.ok(took <= 1000, `the driver ignores abort: a list ended ${took} ms after its signal aborted`);
      },
    },
    {
      id: 'calls.deadline',
      since: '1.0',
      title: 'a call without an answer rejects with `TimeoutError` at its deadline',
      text: 'It rejects with `TimeoutError`. `Call.deadline` is a point in time of `Clock.monotonic`, not a duration.',
      needs: ['fault:list:hang'],
      check: fromStart(async (harness) => {
        await harness.plan('list', 'hang');
        const began = harness.cloud.time.clock.monotonic();
        await harness.failureOf(harness.provider.listNodes(harness.call(5000)), 'a list without an answer', 'timeout');
        const took = harness.cloud.time.clock.monotonic() - began;
        assert.ok(
          took <= 10_000,
          `the driver ignores the deadline: a listing with a deadline in 5000 ms ended after ${took} ms`,
        );
      }),
    },
    {
      id: 'calls.list-again',
      since: '1.0',
      title: 'a listing without an answer does not block other launches',
      text:
        'The listing that launches share has its own deadline. If one listing gets no answer, the driver requests ' +
        'another.',
      needs: ['fault:list:hang', 'times'],
      check: fromStart(async (harness) => {
        await harness.able('setTimes')({ bootMs: BOOT_MS, deleteMs: 0 });
        const launch = harness.launch();
        await harness.plan('list', 'hang');
        await harness.endOf(launch, 'a launch during which one list got no answer');
      }),
    },
    {
      id: 'calls.abandoned',
      since: '1.1',
      title: 'an aborted remote call ends, even if the framework has abandoned it',
      text:
        'The frameworks abandon a call as soon as its signal aborts. If the driver does not pass the signal to ' +
        'the remote call, each such call occupies a connection, a place in a queue, and memory. The kit aborts a ' +
        'listing, a creation and a deletion that the cloud does not answer, and waits until the call is reported ' +
        '(see `calls.reported`).',
      needs: ['fault:list:hang'],
      check: async (context: RuleContext): Promise<void> => {
        for (const operation of ['list', 'create', 'delete'] as const) {
          if (!context.fixture.can.includes(`fault:${operation}:hang`)) continue;
          const harness = await context.start();
          const node = harness.node();
          const launched = operation === 'delete' ? await harness.launched(node) : undefined;
          await harness.plan(operation, 'hang');
          const controller = new AbortController();
          const { signal } = controller;
          let work: Watched<unknown>;
          if (operation === 'list') work = watch(harness.provider.listNodes(harness.call(300_000, signal)));
          else if (launched === undefined) work = harness.launch(node, { signal });
          else work = harness.startCleanUp(node, launched.externalId, { signal });
          await harness.pass(STARTED_MS);
          const before = harness.process.apiCalls.length;
          controller.abort(new Error('the caller gave up'));
          await harness.ended(work, `a ${operation} call that was aborted`);
          const reported = (): boolean => harness.process.apiCalls.length > before;
          assert.ok(
            await harness.cloud.time.until(reported, END_MS),
            `the driver ignores abort: its remote ${operation} call still runs ${END_MS / 1000} s after its signal aborted`,
          );
        }
      },
    },
    {
      id: 'calls.event-loop',
      since: '1.1',
      title: 'a driver blocks the event loop for at most 200 ms',
      text:
        'All providers of a launcher share one thread. While a driver computes or waits in a synchronous function ' +
        '(`execFileSync`, `readFileSync`), no other launch continues, and the ZooKeeper session can expire. The ' +
        'kit launches, lists and deletes a node up to six times. It fails the driver if one turn of the event loop ' +
        'takes more than 200 ms of real time in every attempt.',
      check: fromStart(async (harness) => {
        let shortest = Infinity;
        for (let round = 0; round < BLOCK_ROUNDS && shortest > BLOCK_MS; round += 1) {
          const block = await longestBlock(async () => {
            const node = harness.node();
            const { externalId } = await harness.launched(node);
            await harness.ours();
            await harness.cleanUp(node, externalId);
          });
          shortest = Math.min(shortest, block);
        }
        assert.ok(
          shortest <= BLOCK_MS,
          `the driver blocked the event loop for ${Math.round(shortest)} ms while a node was launched, listed and deleted`,
        );
      }),
    },
    {
      id: 'machine.life',
      since: '1.0',
      title: 'a machine begins as `start`, sets `externalId` early, and completes with a ready instance',
      text:
        'A new machine has the `state` `start` and no `externalId`. It sets `externalId` as soon as it has read ' +
        'the answer to the creation, so that the id is saved before anything else can fail. When `advance` ' +
        'returns `complete`, a creation also returns its instance, which is ready.',
      needs: ['adapter', 'times'],
      check: async (context: RuleContext): Promise<void> => {
        const { harness, machines } = await machinesOn(await context.open());
        await harness.able('setTimes')({ bootMs: BOOT_MS, deleteMs: 0 });
        const make = machines.creation(harness.node());
        const fresh = make(machines.adapter, null, null);
        const { state, externalId } = fresh;
        expectEqual({ state, externalId }, { state: 'start', externalId: undefined }, 'a new machine');
        let knownBooting = false;
        const look = (machine: StateMachine, advance: Advance): void => {
          if (advance.next !== 'call' && advance.next !== 'complete' && machine.externalId !== undefined)
            knownBooting = true;
        };
        const { machine, instance } = await machines.drive(make, { onStep: look });
        assert.ok(knownBooting, 'the external id was not known while the instance was booting');
        expectEqual(instance?.ready, true, '`ready` of the instance that the state machine returned');
        expectEqual(
          machine.externalId,
          instance?.externalId,
          'the external id of the machine and that of its instance',
        );
      },
    },
    {
      id: 'machine.advance',
      since: '1.0',
      title: '`advance` returns at once, never a promise, and starts nothing twice',
      text:
        'It starts or checks a step and returns the event to wait for, never a promise. If it is called again ' +
        'while a call is in progress, it returns the same and starts nothing twice. On a complete machine it ' +
        'returns `complete`.',
      needs: ['adapter', 'resources', 'times'],
      check: async (context: RuleContext): Promise<void> => {
        const { harness, machines } = await machinesOn(await context.open());
        await harness.able('setTimes')({ bootMs: 3000, deleteMs: 3000 });
        const { instance, machine } = await machines.drive(machines.creation(harness.node()), { onStep: askAgain });
        expectEqual(machine.advance(machines.call()).next, 'complete', 'the result of `advance` on a complete machine');
        assert.ok(instance !== undefined, 'the machine was complete without an instance');
        expectEqual((await harness.instances()).length, 1, 'instances after `advance` was called twice at every step');
        await machines.drive(machines.deletion(instance.externalId), { onStep: askAgain });
        await harness.assertNothingLeft('after a deletion in which `advance` was called twice at every step');
      },
    },
  ],
};

interface Lister {
  readonly harness: ProviderHarness;
  readonly list: (signal: AbortSignal, timeoutMs: number) => Promise<unknown>;
}

/** Returns the adapter's own listing if there is an adapter. The framework around it would time out in any case. */
async function listingOf(hasAdapter: boolean, harness: ProviderHarness): Promise<Lister> {
  if (!hasAdapter) {
    const { provider } = await harness.start();
    return { harness, list: (signal, timeoutMs) => provider.listNodes(harness.call(timeoutMs, signal)) };
  }
  const { machines } = await machinesOn(harness);
  const { adapter } = machines;
  return { harness, list: (signal, timeoutMs) => adapter.listInstances(harness.call(timeoutMs, signal)) };
}

async function machinesOn(
  harness: ProviderHarness,
): Promise<{ readonly harness: ProviderHarness; readonly machines: StateMachineRunner }> {
  harness.make();
  const machines = new StateMachineRunner(harness);
  await machines.start();
  return { harness, machines };
}

const NEXT: ReadonlySet<unknown> = new Set(['call', 'listing', 'delay', 'complete']);

/** Advances a machine again immediately. */
function askAgain(machine: StateMachine, advance: Advance, call: Parameters<StateMachine['advance']>[0]): void {
  assert.ok(NEXT.has(advance.next), `in state "${machine.state}", advance returned ${JSON.stringify(advance)}`);
  if (advance.next !== 'call') return;
  setMaxListeners(0, call.signal);
  const again = machine.advance(call);
  expectEqual(
    again.next,
    'call',
    `in state "${machine.state}", with a call in progress, the second call of "advance" waits for a`,
  );
}
