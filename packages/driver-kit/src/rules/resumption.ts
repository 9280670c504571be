import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import { INTERRUPTED_LAUNCH, isDriverError, isJsonObject, type ExternalId, type StateMachine } from '@nodepool/core';
import { expectEqual } from '../expectations.js';
import type { ProviderHarness, TestLaunch, TestNode } from '../provider-harness.js';
import { describeResource, throughJson } from '../provider-harness.js';
import { StateMachineRunner } from '../state-machine-runner.js';
import type { RuleGroup } from '../rule.js';
import { fromStart, type RuleContext } from '../rule-context.js';

const TIMES = { bootMs: 3000, deleteMs: 3000 };

/** Checks that a launch whose process died before saving anything either resumes or reports that nothing exists. */
async function resumedFromNothing(harness: ProviderHarness, node: TestNode, when: string): Promise<void> {
  const before = await harness.instances();
  const resumed = harness.launch(node, { saved: INTERRUPTED_LAUNCH });
  if (before.length === 0) {
    const { code, outcome } = await harness.failureOf(resumed, `the launch of which nothing was made ${when}`);
    expectEqual({ code, outcome }, { code: 'transient', outcome: 'not-applied' }, `${when}, how it ended`);
  } else {
    const { externalId } = await harness.endOf(resumed, `the launch that was interrupted ${when}`);
    expectEqual(externalId, before[0]?.externalId, `${when}, the launch returned another instance than it had created`);
  }
  expectEqual((await harness.instances()).length, before.length, `${when}, the launch left more than one instance`);
}

/** Maximum number of remote calls before a launch counts as endless. */
const MAX_CALLS = 200;

export const resumption: RuleGroup = {
  title: 'Resumption after a restart',
  text: 'The kit stops a provider after every call or step; another one continues from the saved state.',
  rules: [
    {
      id: 'resume.launch',
      since: '1.0',
      title: 'a resumed launch ends with the created instance, or with `transient` and `not-applied`',
      text:
        'The kit stops the provider after the first remote call of a launch, then, in a new cloud, after the ' +
        'second, and so on. A new provider receives the saved state, or `INTERRUPTED_LAUNCH` if there is none. ' +
        'The resumed launch ends with the instance that was created, or with an error of code `transient` and ' +
        'outcome `not-applied` if there is none. It never creates a second instance, and the deletion of the node ' +
        'leaves no resource.',
      needs: ['resources'],
      check: async (context: RuleContext): Promise<void> => {
        await afterEachCall(context, async (harness, launch, when) => {
          await harness.start();
          const { saved, node, settled } = launch;
          if (saved === undefined) {
            if (settled?.ok !== true) await resumedFromNothing(harness, node, when);
            await harness.cleanUp(node, settled?.ok === true ? settled.value.externalId : null);
          } else {
            const resumed = harness.launch(node, { saved: saved.machine, externalId: saved.externalId });
            const { externalId } = await harness.endOf(resumed, `the launch that was resumed ${when}`);
            expectEqual(
              externalId,
              saved.externalId,
              `${when}, the launch returned another instance than it had created`,
            );
            expectEqual(
              (await harness.instances()).length,
              1,
              `${when}, the launch that was resumed left more than one instance`,
            );
            await harness.cleanUp(node, externalId);
          }
          await harness.assertNothingLeft(`${when}, resumed and deleted`);
        });
      },
    },
    {
      id: 'resume.delete',
      since: '1.0',
      title: 'a resumed deletion leaves nothing',
      text:
        'The kit stops the provider after each remote call of a deletion. A second provider completes the ' +
        'deletion and leaves no resource.',
      needs: ['resources'],
      check: async (context: RuleContext): Promise<void> => {
        for (let calls = 1; calls < MAX_CALLS; calls += 1) {
          const harness = await context.start();
          const node = harness.node();
          const { externalId } = await harness.launched(node);
          await harness.cloud.setTimes?.(TIMES);
          let machine: unknown = null;
          const save = async (progress: { readonly machine: unknown }): Promise<void> => {
            machine = progress.machine;
          };
          harness.process.dieAfter(calls);
          const cleanup = harness.startCleanUp(node, externalId, { save });
          await harness.ended(cleanup, 'a deletion whose process died');
          if (!harness.process.died) return;
          await harness.start();
          const saved = isJsonObject(machine) ? throughJson(machine) : null;
          await harness.endOf(harness.startCleanUp(node, externalId, { saved }), 'the deletion that was resumed');
          await harness.assertNothingLeft(`after the deletion whose process died after ${calls} calls was resumed`);
        }
        assert.fail(`a deletion makes more than ${MAX_CALLS} remote calls`);
      },
    },
    {
      id: 'resume.machine-create',
      since: '1.0',
      title: 'a creation machine continues from `save()` and `externalId` after every step',
      text:
        'After any step, a new process can continue with `getCreateStateMachine`, given only `save()` as JSON and ' +
        'the `externalId`. The outcome of a call in progress is then unknown: the machine first searches for its ' +
        'effect by the tag of the attempt. It ends with the one instance, or with an error whose outcome is ' +
        '`not-applied` if there is none.',
      needs: ['adapter', 'resources'],
      check: async (context: RuleContext): Promise<void> => {
        await replacedAfterEachStep(context, async (harness, machines, step) => {
          const node = harness.node();
          const when = `when a machine that creates was replaced after step ${step}`;
          let externalId: ExternalId | undefined;
          let steps = 0;
          try {
            const result = await machines.drive(machines.creation(node), {
              replaceAfter: step,
              onStep: () => (steps += 1),
            });
            externalId = result.instance?.externalId;
            assert.ok(externalId !== undefined, `${when}, it was complete without an instance`);
          } catch (error) {
            if (!isDriverError(error)) throw error;
            expectEqual(
              error.outcome,
              'not-applied',
              `${when}, it failed with "${error.message}"; the outcome of that`,
            );
          }
          const expected = externalId === undefined ? [] : [externalId];
          const existing = (await harness.instances()).map((each) => each.externalId);
          expectEqual(existing, expected, `${when}, these instances exist`);
          return steps;
        });
      },
    },
    {
      id: 'resume.machine-delete',
      since: '1.0',
      title: 'a deletion machine continues after every step and every temporary error',
      text:
        'As for creations: the new machine continues, and in the end no resource exists. After a temporary error, e.g. ' +
        'a conflict (409) because the cloud still deletes the instance, the kit creates another machine, as the ' +
        'framework does. A conflict is therefore no reason to regard the instance as deleted.',
      needs: ['adapter', 'resources'],
      check: async (context: RuleContext): Promise<void> => {
        await replacedAfterEachStep(context, async (harness, machines, step) => {
          const { instance } = await machines.drive(machines.creation(harness.node()));
          assert.ok(instance !== undefined, 'a machine that creates was complete without an instance');
          let steps = 0;
          await machines.drive(machines.deletion(instance.externalId), {
            replaceAfter: step,
            onStep: () => (steps += 1),
            persists: true,
          });
          await harness.assertNothingLeft(`after a deletion state machine was replaced after step ${step}`);
          return steps;
        });
      },
    },
    {
      id: 'resume.data',
      since: '1.0',
      title: '`save()` returns JSON of at most 4096 characters',
      text:
        'The result of `save()` is stored in ZooKeeper in the node’s record, and is read by another process, ' +
        'perhaps with another version of the driver. It must not change in a round trip through JSON, and has at ' +
        'most 4096 characters, because a node is a single znode and there are many nodes.',
      needs: ['adapter'],
      check: async (context: RuleContext): Promise<void> => {
        const harness = await context.open();
        harness.make();
        const machines = new StateMachineRunner(harness);
        await machines.start();
        const look = (machine: StateMachine): void => {
          const saved = machine.save();
          const place = `in state "${machine.state}"`;
          assert.ok(
            isDeepStrictEqual(throughJson(saved), saved),
            `${place}, the saved state changes in a round trip through JSON`,
          );
          const { length } = JSON.stringify(saved);
          assert.ok(length <= 4096, `${place}, the saved state has ${length} characters`);
        };
        const { instance } = await machines.drive(machines.creation(harness.node()), { onStep: look });
        if (instance !== undefined) await machines.drive(machines.deletion(instance.externalId), { onStep: look });
      },
    },
    {
      id: 'resume.stop-keeps',
      since: '1.0',
      title: 'stopping a provider deletes nothing',
      text:
        'Launchers can be restarted at any time. `stop` interrupts the work and deletes nothing; the next process ' +
        'resumes the work.',
      needs: ['times'],
      check: fromStart(async (harness) => {
        await harness.able('setTimes')({ bootMs: 20_000, deleteMs: 0 });
        const launch = harness.launch();
        await harness.pass(10_000);
        const before = await harness.instances();
        expectEqual(before.length, 1, 'there is no instance half-way through the boot');
        await harness.finish(harness.process.stop(), 'the stop of the provider');
        await harness.failureOf(launch, 'the launch of a provider that was stopped');
        await harness.start();
        const after = (await harness.instances()).map(describeResource);
        expectEqual(after, before.map(describeResource), 'what exists after the stop');
      }),
    },
  ],
};

/** Launches once for each remote call of a launch, each time on a new cloud. The process dies after that call. */
export async function afterEachCall(
  context: RuleContext,
  look: (harness: ProviderHarness, launch: TestLaunch, when: string) => Promise<void>,
): Promise<void> {
  for (let calls = 1; calls < MAX_CALLS; calls += 1) {
    const harness = await context.start();
    await harness.cloud.setTimes?.(TIMES);
    harness.process.dieAfter(calls);
    const launch = harness.launch();
    await harness.ended(launch, 'a launch whose process died');
    if (!harness.process.died) {
      assert.ok(calls > 1, 'a launch reports no remote call, see `calls.reported`');
      return;
    }
    await look(harness, launch, `after ${calls} remote calls`);
  }
  assert.fail(`a launch makes more than ${MAX_CALLS} remote calls`);
}

/** Repeats `drive` for each successive step, each time on a new cloud. Resolves with the number of steps. */
async function replacedAfterEachStep(
  context: RuleContext,
  drive: (harness: ProviderHarness, machines: StateMachineRunner, step: number) => Promise<number>,
): Promise<void> {
  for (let step = 1, steps = Infinity; step <= steps; step += 1) {
    const harness = await context.open();
    await harness.cloud.setTimes?.(TIMES);
    harness.make();
    const machines = new StateMachineRunner(harness);
    await machines.start();
    steps = await drive(harness, machines, step);
    assert.ok(steps < MAX_CALLS, `the machine takes more than ${MAX_CALLS} steps`);
  }
}
