import assert from 'node:assert/strict';
import { AbortedError } from '@nodepool/core';
import { expectEqual } from '../expectations.js';
import type { RuleGroup } from '../rule.js';
import { fromStart } from '../rule-context.js';

const BOOT_MS = 20_000;

export const life: RuleGroup = {
  title: 'Life of an instance',
  text: '',
  rules: [
    {
      id: 'life.launch',
      since: '1.0',
      title: 'a launch creates one running instance with `externalId` and `interfaceIp`',
      text:
        'When `launch` resolves, exactly one instance exists for the node, the cloud reports it as running, and ' +
        'the result contains its `externalId` and an `interfaceIp` (the address for logins). The launcher then ' +
        'tries the login, so it would never learn of an address that is assigned later.',
      check: fromStart(async (harness) => {
        const node = harness.node();
        const instance = await harness.launched(node);
        assert.ok(instance.externalId !== '', 'the launched instance has no externalId');
        assert.ok(instance.interfaceIp, 'the launched instance has no interfaceIp');
        const existing = await harness.instances();
        expectEqual(existing.length, 1, 'instances after the launch');
        expectEqual(existing[0]?.externalId, instance.externalId, 'the external id that the launch returned');
      }),
    },
    {
      id: 'life.ready',
      since: '1.0',
      title: 'a launch resolves when the instance runs and is listed as `ready`',
      text:
        'A cloud accepts a creation long before the instance runs. `launch` resolves when the instance runs, not ' +
        'when the creation is accepted. The listed instance is `ready` from then on.',
      needs: ['times'],
      check: fromStart(async (harness) => {
        await harness.able('setTimes')({ bootMs: BOOT_MS, deleteMs: 0 });
        const began = harness.cloud.time.clock.monotonic();
        await harness.launched();
        const took = harness.cloud.time.clock.monotonic() - began;
        assert.ok(
          took >= BOOT_MS,
          `the instance needs ${BOOT_MS} ms to boot, but the launch resolved after ${took} ms`,
        );
        expectEqual(
          (await harness.ours()).map(({ ready }) => ready),
          [true],
          'a launched instance is not listed as ready',
        );
      }),
    },
    {
      id: 'life.each-its-own',
      since: '1.0',
      title: 'concurrent launches end with an instance each',
      text: 'One provider runs many launches at the same time. Each launch ends with its own instance.',
      check: fromStart(async (harness) => {
        const launches = Array.from({ length: 5 }, () => harness.launch());
        const ids: unknown[] = [];
        for (const launch of launches) {
          const { externalId } = await harness.endOf(launch, `the launch of node ${launch.node.id}`);
          ids.push(JSON.stringify(externalId));
        }
        expectEqual(
          new Set(ids).size,
          launches.length,
          `${launches.length} launches returned these instances: ${ids.join(', ')}`,
        );
        expectEqual((await harness.instances()).length, launches.length, 'not every launch has an instance of its own');
      }),
    },
    {
      id: 'life.fails',
      since: '1.0',
      title: 'a launch rejects with `InstanceFailedError` and the reason if its instance fails while booting',
      text:
        'If the instance enters a state from which it cannot start to run, the launch rejects with ' +
        '`InstanceFailedError` and the reason that the cloud reports. Waiting for the timeout instead could waste ' +
        'an hour.',
      needs: ['break-instance', 'times'],
      check: fromStart(async (harness) => {
        await harness.able('setTimes')({ bootMs: BOOT_MS, deleteMs: 0 });
        const launch = harness.launch();
        await harness.pass(BOOT_MS / 2);
        const [instance] = await harness.instances();
        assert.ok(instance?.externalId !== undefined, 'there is no instance half-way through the boot');
        await harness.able('breakInstance')(instance.externalId);
        const began = harness.cloud.time.clock.monotonic();
        await harness.failureOf(launch, 'the launch of an instance that failed while it booted', 'instance-failed');
        const took = harness.cloud.time.clock.monotonic() - began;
        assert.ok(took <= 120_000, `the launch failed only ${took} ms after its instance had failed`);
      }),
    },
    {
      id: 'life.vanishes',
      since: '1.0',
      title: 'a launch fails if its instance disappears while booting, and creates no other one',
      text:
        'An instance can be preempted, deleted by hand, or lost with its host. The launch fails once listings had ' +
        'enough time to show the instance. It does not wait for its timeout and does not create another instance.',
      needs: ['destroy-instance', 'times'],
      check: fromStart(async (harness) => {
        await harness.able('setTimes')({ bootMs: BOOT_MS, deleteMs: 0 });
        const launch = harness.launch();
        await harness.pass(BOOT_MS / 2);
        const [instance] = await harness.instances();
        assert.ok(instance?.externalId !== undefined, 'there is no instance half-way through the boot');
        await harness.able('destroyInstance')(instance.externalId);
        const { code } = await harness.failureOf(launch, 'the launch of an instance that vanished');
        assert.notEqual(code, 'timeout', 'the launch waited for its timeout although its instance no longer existed');
        await harness.cleanUp(launch.node, instance.externalId);
        await harness.assertNothingLeft('after the launch of an instance that vanished, and its deletion');
      }),
    },
    {
      id: 'life.delete',
      since: '1.0',
      title: '`waitForNodeCleanup` resolves when every resource of the node is deleted',
      text:
        'When `waitForNodeCleanup` resolves, every resource that was created for the node is deleted. It waits ' +
        'until the cloud has completed the deletion, not only accepted it, because the launcher afterwards removes ' +
        'the node’s record, the only reference to the resources, and reuses their quota.',
      needs: ['resources', 'times'],
      check: fromStart(async (harness) => {
        await harness.able('setTimes')({ bootMs: 0, deleteMs: 30_000 });
        const node = harness.node();
        const { externalId } = await harness.launched(node);
        await harness.cleanUp(node, externalId);
        await harness.assertNothingLeft('when the deletion had completed');
      }),
    },
    {
      id: 'life.delete-twice',
      since: '1.0',
      title: 'deleting a deleted node succeeds',
      text:
        'The launcher repeats a deletion whenever the result of the last one is unknown: after a restart, after ' +
        'another launcher or an operator has deleted the instance. An instance that does not exist counts as ' +
        'deleted.',
      check: fromStart(async (harness) => {
        const node = harness.node();
        const { externalId } = await harness.launched(node);
        await harness.cleanUp(node, externalId);
        await harness.cleanUp(node, externalId);
        await harness.start();
        await harness.cleanUp(node, externalId);
        await harness.assertNothingLeft('after three deletions');
      }),
    },
    {
      id: 'life.delete-together',
      since: '1.0',
      title: 'concurrent deletions of a node succeed',
      text: 'Two launchers can delete the same node at the same time. Neither may fail because of the other.',
      check: fromStart(async (harness) => {
        await harness.cloud.setTimes?.({ bootMs: 0, deleteMs: BOOT_MS });
        const node = harness.node();
        const { externalId } = await harness.launched(node);
        const first = harness.startCleanUp(node, externalId);
        await harness.start();
        const second = harness.startCleanUp(node, externalId);
        await harness.endOf(first, 'the first of two deletions');
        await harness.endOf(second, 'the second of two deletions');
        await harness.assertNothingLeft('after both');
      }),
    },
    {
      id: 'life.delete-unknown',
      since: '1.0',
      title: '`cleanupNode` with `externalId: null` deletes only resources with the tags of the attempt',
      text:
        'A launcher can crash between a creation and its answer, which contains the id. `cleanupNode` with ' +
        '`externalId: null` deletes the resources with the tags of the launch attempt, and no others. ' +
        'If there are none, it succeeds.',
      check: fromStart(async (harness) => {
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
      }),
    },
    {
      id: 'life.delete-unfinished',
      since: '1.0',
      title: 'an aborted launch can be deleted',
      text:
        '`cleanupNode` deletes all resources of a node, whatever stage its launch had reached when it was ' +
        'aborted.',
      needs: ['times'],
      check: fromStart(async (harness) => {
        await harness.able('setTimes')({ bootMs: BOOT_MS, deleteMs: 1000 });
        const controller = new AbortController();
        const launch = harness.launch(harness.node(), { signal: controller.signal });
        await harness.pass(BOOT_MS / 2);
        controller.abort(new AbortedError('it was aborted by the test'));
        await harness.failureOf(launch, 'the launch that was aborted');
        await harness.cleanUp(launch.node, launch.saved?.externalId ?? null);
        await harness.assertNothingLeft('after the deletion of an unfinished launch');
      }),
    },
  ],
};
