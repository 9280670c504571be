/** Rules about drivers whose nodes are slots of nodes of other labels. */

import assert from 'node:assert/strict';
import { parseBackingData, slotPlaceOf, type LaunchedInstance } from '@nodepool/core';
import { expectEqual } from '../expectations.js';
import type { ProviderHarness, TestLaunch } from '../provider-harness.js';
import type { RuleGroup } from '../rule.js';
import { fromStart, type RuleContext } from '../rule-context.js';
import { backingOf } from '../simulated-backing.js';

/** Time for all timers of a driver, apart from those of the test cloud. */
const SETTLED_MS = 1000;

export const backed: RuleGroup = {
  title: 'Nodes on backing nodes',
  text: 'For drivers whose nodes are slots of nodes of other labels (`backingNodes`).',
  rules: [
    {
      id: 'backed.slot',
      since: '1.6',
      title: 'a launch returns slot, address and `backing_node`, whose data names the node',
      text:
        'The result of a launch has `slot`, `driverData` with `backing_node`, and the address of the backing node. The ' +
        'data of the backing node names the node in this slot, so that no launcher assigns it again.',
      appliesTo: 'backed',
      check: fromStart(async (harness) => {
        const backing = backingOf(harness.cloud);
        const node = harness.node();
        const instance = await harness.launched(node);
        const place = placeOf(instance);
        const record = backing.nodes().find(({ id }) => id === place.backingNode);
        assert.ok(record !== undefined, `there is no backing node ${place.backingNode}`);
        expectEqual(instance.slot, place.slot, '`slot` of the instance');
        expectEqual(instance.interfaceIp, record.interface_ip, 'the address of the instance');
        expectEqual(
          parseBackingData(record.user_data)?.used.get(place.slot)?.node,
          node.id,
          'the node in this slot of the backing node',
        );
      }),
    },
    {
      id: 'backed.burst',
      since: '1.6',
      title: 'a burst requests as many backing nodes as slots are missing',
      text:
        'Launches at the same moment share backing nodes: their number is that of the launches divided by the slots of ' +
        'a backing node, rounded up. No two launches have the same slot.',
      appliesTo: 'backed',
      check: fromStart(async (harness) => {
        const { slots } = settingsOf(harness);
        const instances = await launchAll(harness, 2 * slots + 1);
        expectEqual(backingOf(harness.cloud).requested.length, 3, 'requests of backing nodes');
        assertDistinct(instances);
      }),
    },
    {
      id: 'backed.several-launchers',
      since: '1.6',
      title: 'several launchers assign no slot twice',
      text:
        'Two launchers with the same provider launch at the same moment. Each sees the launches and the requests of the ' +
        'other in the records.',
      appliesTo: 'backed',
      check: fromStart(async (harness) => {
        const { slots } = settingsOf(harness);
        const launches: TestLaunch[] = [];
        const launchHalf = (): void => {
          for (let count = 0; count < slots; count += 1) launches.push(harness.launch());
        };
        launchHalf();
        await harness.start();
        launchHalf();
        assertDistinct(await endAll(harness, launches));
        expectEqual(backingOf(harness.cloud).requested.length, 2, 'requests of backing nodes');
      }),
    },
    {
      id: 'backed.taken-over',
      since: '1.6',
      title: 'the request of a launcher that died serves the next one',
      text:
        'A launcher dies while it waits for a backing node. Another one takes over the request, and requests no further ' +
        'backing node.',
      appliesTo: 'backed',
      check: fromStart(async (harness) => {
        const backing = backingOf(harness.cloud);
        backing.bootMs = 20_000;
        const launch = harness.launch();
        await harness.pass(SETTLED_MS);
        await harness.finish(harness.process.stop(), 'the stop of the first launcher');
        await harness.ended(launch, 'the launch of the stopped launcher');
        await harness.start();
        await harness.launched(launch.node);
        expectEqual(backing.requested.length, 1, 'requests of backing nodes');
        expectEqual(backing.nodes().length, 1, 'backing nodes');
      }),
    },
    {
      id: 'backed.failure',
      since: '1.6',
      title: 'a failed backing request is replaced, and fails no launch',
      text: 'The driver replaces the failed request by another one. All launches that wait receive its slots.',
      appliesTo: 'backed',
      check: fromStart(async (harness) => {
        const backing = backingOf(harness.cloud);
        const { slots } = settingsOf(harness);
        backing.failNext(1);
        assertDistinct(await launchAll(harness, slots));
        expectEqual(backing.requested.length, 2, 'requests of backing nodes');
      }),
    },
    {
      id: 'backed.refusal',
      since: '1.6',
      title: 'launches end as `not-applied` if all backing requests fail',
      text:
        'After several failed requests in a row, the launches reject with an error of the outcome `not-applied`, so that ' +
        'another provider can serve the request.',
      appliesTo: 'backed',
      check: fromStart(async (harness) => {
        const backing = backingOf(harness.cloud);
        backing.failNext(1000);
        const { outcome } = await harness.failureOf(harness.launch(), 'a launch without a backing node');
        expectEqual(outcome, 'not-applied', 'the outcome of the launch');
        assert.ok(backing.requested.length > 1, 'the driver made only one request of a backing node');
        assert.ok(backing.requested.length < 100, `the driver made ${backing.requested.length} requests`);
      }),
    },
    {
      id: 'backed.packing',
      since: '1.6',
      title: 'the fullest backing node is filled first',
      text: 'The backing node with the fewest free slots serves the next launch, so that the others become empty.',
      appliesTo: 'backed',
      check: fromStart(async (harness) => {
        const { slots } = settingsOf(harness);
        const launches = Array.from({ length: 2 * slots }, () => harness.launch());
        const instances = await endAll(harness, launches);
        const [first = '', second = ''] = [...new Set(instances.map((each) => placeOf(each).backingNode))].sort();
        // The first backing node has one free slot less than the second.
        const freed = [...indexesOn(instances, second).slice(1), ...indexesOn(instances, first).slice(2)];
        for (const index of freed) {
          const [launch, instance] = [launches[index], instances[index]];
          if (launch !== undefined && instance !== undefined) await harness.cleanUp(launch.node, instance.externalId);
        }
        const next = await harness.launched();
        expectEqual(placeOf(next).backingNode, first, 'the backing node of the next launch');
      }),
    },
    {
      id: 'backed.release',
      since: '1.6',
      title: 'a backing node is released after its last node, and not before',
      text:
        'A backing node with a slot in use is never released. Once the last slot is free for the configured time, the ' +
        'node is released without any other action.',
      appliesTo: 'backed',
      check: fromStart(async (harness) => {
        const backing = backingOf(harness.cloud);
        const { graceMs } = settingsOf(harness);
        const [first, second] = [harness.launch(), harness.launch()];
        const [one, two] = await endAll(harness, [first, second]);
        await harness.cleanUp(first.node, one?.externalId ?? null);
        await harness.pass(2 * graceMs);
        expectEqual(backing.released.length, 0, 'released backing nodes while a slot is in use');
        await harness.cleanUp(second.node, two?.externalId ?? null);
        expectEqual(backing.released.length, 0, 'released backing nodes before the end of the time');
        await harness.pass(graceMs + SETTLED_MS);
        expectEqual(backing.released.length, 1, 'released backing nodes');
        const [released] = backing.released;
        expectEqual(parseBackingData(released?.userData ?? null)?.used.size, 0, 'slots in use at the release');
      }),
    },
    {
      id: 'backed.lost',
      since: '1.6',
      title: 'a lost backing node gets no nodes, and its nodes are listed as failed',
      text:
        'The cloud of a backing node takes it away, or an operator deletes it. Its free slots are not assigned any more, ' +
        'and the listing has its nodes as `failed`, so that the launcher replaces them.',
      appliesTo: 'backed',
      check: async (context: RuleContext): Promise<void> => {
        for (const end of ['lose', 'remove'] as const) {
          const harness = await context.start();
          const backing = backingOf(harness.cloud);
          const first = await harness.launched();
          const { backingNode } = placeOf(first);
          backing[end](backingNode);
          const [listed] = await harness.ours();
          assert.ok(listed?.failed !== undefined, `after ${end}, the node is not listed as failed`);
          const second = await harness.launched();
          assert.notEqual(placeOf(second).backingNode, backingNode, `after ${end}, the backing node got another node`);
        }
      },
    },
    {
      id: 'backed.orphans',
      since: '1.6',
      title: 'a slot whose node does not exist becomes free',
      text: 'The record of a node is created before its slot is assigned, so a slot without a record is free.',
      appliesTo: 'backed',
      check: fromStart(async (harness) => {
        const backing = backingOf(harness.cloud);
        const node = harness.node();
        await harness.launched(node);
        backing.deleted(node.id);
        await harness.pass(SETTLED_MS);
        const used = backing.nodes().map(({ user_data: data }) => parseBackingData(data)?.used.size);
        expectEqual(used, [0], 'slots in use of the backing node');
      }),
    },
  ],
};

function settingsOf({ fixture }: ProviderHarness): { readonly slots: number; readonly graceMs: number } {
  const { backed: settings } = fixture;
  assert.ok(settings !== undefined, 'the fixture has no `backed`');
  return settings;
}

function launchAll(harness: ProviderHarness, count: number): Promise<readonly LaunchedInstance[]> {
  return endAll(
    harness,
    Array.from({ length: count }, () => harness.launch()),
  );
}

async function endAll(harness: ProviderHarness, launches: readonly TestLaunch[]): Promise<readonly LaunchedInstance[]> {
  const instances: LaunchedInstance[] = [];
  for (const launch of launches) instances.push(await harness.endOf(launch, `the launch of node ${launch.node.id}`));
  return instances;
}

function placeOf({ driverData = null }: LaunchedInstance): { readonly backingNode: string; readonly slot: number } {
  const place = slotPlaceOf({ driver_data: driverData });
  assert.ok(place !== undefined, '`driverData` of the instance names no slot of a backing node');
  return place;
}

function assertDistinct(instances: readonly LaunchedInstance[]): void {
  const places = instances.map((instance) => JSON.stringify(placeOf(instance)));
  expectEqual(new Set(places).size, instances.length, `slots of the launches: ${places.join(', ')}`);
}

function indexesOn(instances: readonly LaunchedInstance[], backingNode: string): readonly number[] {
  return instances.flatMap((instance, index) => (placeOf(instance).backingNode === backingNode ? [index] : []));
}
