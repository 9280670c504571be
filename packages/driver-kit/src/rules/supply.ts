import assert from 'node:assert/strict';
import type { Call, SuppliedMachine } from '@nodepool/core';
import type { ProviderHarness } from '../provider-harness.js';
import { expectEqual } from '../expectations.js';
import type { RuleGroup } from '../rule.js';
import { fromStart } from '../rule-context.js';
import { watch } from '../watched.js';

export const supply: RuleGroup = {
  title: 'Existing machines',
  text: 'For drivers that declare machines to `nodeSupply`.',
  rules: [
    {
      id: 'supply.declared',
      since: '1.2',
      title: 'every label has a machine, and host name, user and port together are unique',
      text:
        'The configuration has `createsNodes: false`, so that the launcher lets requests wait for nodes instead ' +
        'of launching them. For each label of a pool there is a machine in that pool. The host name, user and ' +
        'port together are different for each machine, because the launcher identifies the node of a slot by them ' +
        'after a restart.',
      appliesTo: 'supplying',
      check: fromStart(async (harness) => {
        const { config } = harness.process;
        expectEqual(config.createsNodes, false, '`createsNodes` of the configuration');
        const machines = machinesOf(harness);
        const identities = machines.map(
          ({ hostname, connection }) => `${hostname} ${connection.username} ${connection.port}`,
        );
        expectEqual(new Set(identities).size, identities.length, 'machines with different host name, user and port');
        for (const [name, pool] of config.pools) {
          const labels = machines.filter((machine) => machine.pool === name).flatMap((machine) => machine.labels);
          expectEqual(
            [...new Set(labels)].sort(),
            [...pool.labels.keys()].sort(),
            `labels of the machines of pool ${name}`,
          );
        }
        for (const { pool, slots } of machines) {
          assert.ok(config.pools.has(pool), `a machine is in pool ${pool}, which does not exist`);
          assert.ok(Number.isInteger(slots) && slots >= 0, `a machine has ${slots} slots`);
        }
      }),
    },
    {
      id: 'supply.check',
      since: '1.2',
      title: 'a check rejects with a `DriverError` while the login does not answer',
      text:
        'A machine whose check rejects gets no nodes. Operators read the message of the `DriverError` as the ' +
        'reason. Once the machine answers, the check succeeds without any other action.',
      appliesTo: 'supplying',
      check: fromStart(async (harness) => {
        const { machine, logins } = firstOf(harness);
        const facts = await harness.finish(machine.check(harness.call()), 'the check of a machine that answers');
        assert.ok(Array.isArray(facts.hostKeys), 'the facts of a machine have no host keys');
        logins.setSilent(machine.hostname, true);
        const { message } = await harness.failureOf(
          machine.check(harness.call()),
          'the check of a machine that is silent',
        );
        assert.ok(message.includes(machine.hostname), `the error does not name the machine: ${message}`);
        logins.setSilent(machine.hostname, false);
        await harness.finish(machine.check(harness.call()), 'the check of a machine that answers again');
      }),
    },
    {
      id: 'supply.abort',
      since: '1.2',
      title: 'a check ends when its signal aborts, and at its deadline',
      text: 'A provider must be able to stop without waiting for machines that do not answer.',
      appliesTo: 'supplying',
      check: fromStart(async (harness) => {
        const { machine, logins } = firstOf(harness);
        logins.setSilent(machine.hostname, true);
        const { clock } = harness.cloud.time;
        const took = async (call: Call, what: string): Promise<number> => {
          const began = clock.monotonic();
          await harness.failureOf(machine.check(call), what);
          return clock.monotonic() - began;
        };
        const late = await took(harness.call(2000), 'a check whose deadline is in two seconds');
        assert.ok(late <= 3000, `a check with a deadline in 2000 ms ended after ${late} ms`);
        const controller = new AbortController();
        const check = watch(machine.check(harness.call(300_000, controller.signal)));
        await harness.pass(1);
        controller.abort(new Error('it was aborted by the test'));
        const began = clock.monotonic();
        await harness.failureOf(check, 'a check that was aborted');
        const afterwards = clock.monotonic() - began;
        assert.ok(afterwards <= 1000, `a check ended ${afterwards} ms after its signal aborted`);
      }),
    },
    {
      id: 'supply.delete',
      since: '1.2',
      title: 'deleting a node does not remove its machine',
      text:
        'The launcher deletes the node of a slot after each use and registers the next one. `cleanupNode` and ' +
        '`waitForNodeCleanup` succeed, and the machine remains declared.',
      appliesTo: 'supplying',
      check: fromStart(async (harness) => {
        const { machine } = firstOf(harness);
        const count = machinesOf(harness).length;
        await harness.cleanUp(harness.node(), machine.hostname);
        expectEqual(machinesOf(harness).length, count, 'machines after the deletion of a node');
      }),
    },
    {
      id: 'supply.launch',
      since: '1.2',
      title: 'a launch is rejected as not applied',
      text:
        'The launcher never calls `launch` for this driver. If it is called nevertheless, it must not wait for a ' +
        'machine.',
      appliesTo: 'supplying',
      check: fromStart(async (harness) => {
        const { outcome } = await harness.failureOf(harness.launch(), 'a launch of a driver that creates nothing');
        expectEqual(outcome, 'not-applied', 'the outcome of the launch');
      }),
    },
  ],
};

function machinesOf(harness: ProviderHarness): readonly SuppliedMachine[] {
  const { machines } = harness.process;
  assert.ok(machines !== undefined, 'the provider has declared no machines to `nodeSupply`');
  return machines;
}

/** Returns the first declared machine and the simulated logins. */
function firstOf(harness: ProviderHarness): {
  readonly machine: SuppliedMachine;
  readonly logins: NonNullable<ProviderHarness['cloud']['logins']>;
} {
  const [machine] = machinesOf(harness);
  const { logins } = harness.cloud;
  assert.ok(machine !== undefined, 'the section of the test cloud has no machine');
  assert.ok(logins !== undefined, 'the test cloud has no `logins`');
  return { machine, logins };
}
