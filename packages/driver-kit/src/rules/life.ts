/** Rules about an instance's lifecycle. */

import assert from 'node:assert/strict';
import { AbortedError } from '@nodepool/core';
import { expectEqual } from '../expectations.js';
import type { RuleGroup } from '../rule.js';
import type { RuleContext } from '../rule-context.js';

const BOOT_MS = 20_000;

export const life: RuleGroup = {
  title: 'The life of an instance',
  text: 'What a launch gives, and what a deletion promises.',
  rules: [
    {
      id: 'life.launch',
      since: '1.0',
      title: 'a launch gives one instance that runs and can be reached',
      text:
        'When `launch` resolves, exactly one instance exists for the node, the cloud says that it runs, and the result has its `externalId` and ' +
        'an `interfaceIp` (the address at which one shall log in). The launcher tries the login next: an address that comes later is an address ' +
        'that it never hears of.',
      needs: [],
      check: async (context: RuleContext): Promise<void> => {
        const harness = await context.start();
        const node = harness.node();
        const instance = await harness.launched(node);
        assert.ok(instance.externalId !== '', 'the launched instance has no externalId');
        assert.ok(instance.interfaceIp, 'the launched instance has no interfaceIp');
        const existing = await harness.instances();
        expectEqual(existing.length, 1, `one instance was to exist after the launch, not ${existing.length}`);
        expectEqual(
          existing[0]?.externalId,
          instance.externalId,
          'the launch gave another externalId than the cloud has',
        );
      },
    },
    {
      id: 'life.ready',
      since: '1.0',
      title: 'a launch waits until the instance runs',
      text:
        'The cloud accepts a creation long before the instance runs. `launch` resolves when it runs, not when it was accepted: `ready` of ' +
        'the listed instance is what the launcher relies on.',
      needs: ['times'],
      check: async (context: RuleContext): Promise<void> => {
        const harness = await context.start();
        await harness.able('setTimes')({ bootMs: BOOT_MS, deleteMs: 0 });
        const began = harness.cloud.time.clock.monotonic();
        await harness.launched();
        const took = harness.cloud.time.clock.monotonic() - began;
        assert.ok(
          took >= BOOT_MS,
          `the instance needs ${BOOT_MS} ms to boot, and the launch was over after ${took} ms`,
        );
        expectEqual(
          (await harness.ours()).map(({ ready }) => ready),
          [true],
          'a launched instance is not listed as ready',
        );
      },
    },
    {
      id: 'life.each-its-own',
      since: '1.0',
      title: 'launches at the same time do not get in the way of each other',
      text: 'Many launches run at once in one provider. Each ends with an instance of its own.',
      needs: [],
      check: async (context: RuleContext): Promise<void> => {
        const harness = await context.start();
        const launches = Array.from({ length: 5 }, () => harness.launch());
        const ids: unknown[] = [];
        for (const launch of launches) {
          const { externalId } = await harness.endOf(launch, `the launch of node ${launch.node.id}`);
          ids.push(JSON.stringify(externalId));
        }
        expectEqual(
          new Set(ids).size,
          launches.length,
          `${launches.length} launches gave these instances: ${ids.join(', ')}`,
        );
        expectEqual((await harness.instances()).length, launches.length, 'not every launch has an instance of its own');
      },
    },
    {
      id: 'life.fails',
      since: '1.0',
      title: 'an instance that fails while it boots ends its launch',
      text:
        'An instance that goes to a state from which it never comes to run rejects the launch with `InstanceFailedError` and the reason that the cloud ' +
        'gives. Waiting for the time-out instead would cost an hour.',
      needs: ['break-instance', 'times'],
      check: async (context: RuleContext): Promise<void> => {
        const harness = await context.start();
        await harness.able('setTimes')({ bootMs: BOOT_MS, deleteMs: 0 });
        const launch = harness.launch();
        await harness.pass(BOOT_MS / 2);
        const [instance] = await harness.instances();
        assert.ok(instance?.externalId !== undefined, 'there is no instance half-way through the boot');
        await harness.able('breakInstance')(instance.externalId);
        const began = harness.cloud.time.clock.monotonic();
        await harness.failureOf(launch, 'the launch of an instance that failed while it booted', 'instance-failed');
        const took = harness.cloud.time.clock.monotonic() - began;
        assert.ok(took <= 120_000, `the launch went on for ${took} ms after its instance had failed`);
      },
    },
    {
      id: 'life.vanishes',
      since: '1.0',
      title: 'an instance that vanishes while it boots ends its launch',
      text:
        'Preempted, deleted by hand, lost with its host: once the cloud has had the time to show what exists, a launch whose instance is gone is over. It ' +
        'must not wait for its time-out, and must not make another instance by itself.',
      needs: ['destroy-instance', 'times'],
      check: async (context: RuleContext): Promise<void> => {
        const harness = await context.start();
        await harness.able('setTimes')({ bootMs: BOOT_MS, deleteMs: 0 });
        const launch = harness.launch();
        await harness.pass(BOOT_MS / 2);
        const [instance] = await harness.instances();
        assert.ok(instance?.externalId !== undefined, 'there is no instance half-way through the boot');
        await harness.able('destroyInstance')(instance.externalId);
        const { code } = await harness.failureOf(launch, 'the launch of an instance that vanished');
        assert.notEqual(code, 'timeout', 'the launch waited for its time-out although its instance was gone');
        await harness.cleanUp(launch.node, instance.externalId);
        await harness.assertNothingLeft('after the launch of an instance that vanished, and its deletion');
      },
    },
    {
      id: 'life.delete',
      since: '1.0',
      title: 'a deletion is over when everything of the node is gone',
      text:
        'When `waitForNodeCleanup` resolves, nothing that was made for the node exists any more. That the cloud has accepted the deletion is no ' +
        'proof: the record of the node is removed next, and with it all knowledge of what may still be there, and the quota is given to others.',
      needs: ['resources', 'times'],
      check: async (context: RuleContext): Promise<void> => {
        const harness = await context.start();
        await harness.able('setTimes')({ bootMs: 0, deleteMs: 30_000 });
        const node = harness.node();
        const { externalId } = await harness.launched(node);
        await harness.cleanUp(node, externalId);
        await harness.assertNothingLeft('in the moment in which the deletion was over');
      },
    },
    {
      id: 'life.delete-twice',
      since: '1.0',
      title: 'deleting what is gone already is a success',
      text:
        'A deletion is repeated whenever it is not known how the last one ended: after a restart, by another launcher, after an operator was ' +
        'faster. An instance that does not exist is deleted.',
      needs: [],
      check: async (context: RuleContext): Promise<void> => {
        const harness = await context.start();
        const node = harness.node();
        const { externalId } = await harness.launched(node);
        await harness.cleanUp(node, externalId);
        await harness.cleanUp(node, externalId);
        await harness.start();
        await harness.cleanUp(node, externalId);
        await harness.assertNothingLeft('after three deletions');
      },
    },
    {
      id: 'life.delete-together',
      since: '1.0',
      title: 'two deletions of one node at the same time both succeed',
      text: 'Two launchers can come to delete the same node. Neither may fail because of the other.',
      needs: [],
      check: async (context: RuleContext): Promise<void> => {
        const harness = await context.start();
        await harness.cloud.setTimes?.({ bootMs: 0, deleteMs: BOOT_MS });
        const node = harness.node();
        const { externalId } = await harness.launched(node);
        const first = harness.startCleanUp(node, externalId);
        await harness.start();
        const second = harness.startCleanUp(node, externalId);
        await harness.endOf(first, 'the first of two deletions');
        await harness.endOf(second, 'the second of two deletions');
        await harness.assertNothingLeft('after both');
      },
    },
    {
      id: 'life.delete-unknown',
      since: '1.0',
      title: 'what the cloud has of a node is found by its tags when its id is not known',
      text:
        'A launcher can die between a creation and the moment in which it learns the id. `cleanupNode` with `externalId: null` deletes ' +
        'whatever carries the tags of the node and of this provider, and nothing else. If there is nothing, it succeeds.',
      needs: [],
      check: async (context: RuleContext): Promise<void> => {
        const harness = await context.start();
        const node = harness.node();
        await harness.launched(node);
        const other = await harness.launched();
        await harness.cleanUp(node, null);
        const left = await harness.instances();
        expectEqual(
          left.map((each) => each.externalId),
          [other.externalId],
          'what is left after the deletion of one of two nodes',
        );
        await harness.cleanUp(harness.node(), null);
        expectEqual((await harness.instances()).length, 1, 'the deletion of a node without instance deleted one');
      },
    },
    {
      id: 'life.delete-unfinished',
      since: '1.0',
      title: 'a launch that was given up can be deleted',
      text: 'Whatever a launch had come to when it was aborted, `cleanupNode` brings the node to where nothing of it exists.',
      needs: ['times'],
      check: async (context: RuleContext): Promise<void> => {
        const harness = await context.start();
        await harness.able('setTimes')({ bootMs: BOOT_MS, deleteMs: 1000 });
        const controller = new AbortController();
        const launch = harness.launch(harness.node(), { signal: controller.signal });
        await harness.pass(BOOT_MS / 2);
        controller.abort(new AbortedError('it was aborted by the test'));
        await harness.failureOf(launch, 'the launch that was aborted');
        await harness.cleanUp(launch.node, launch.saved?.externalId ?? null);
        await harness.assertNothingLeft('after the deletion of an unfinished launch');
      },
    },
  ],
};
