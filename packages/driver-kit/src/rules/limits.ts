/** Rules about errors, quota and zones. */

import assert from 'node:assert/strict';
import type { DriverErrorCode, Outcome, Resources } from '@nodepool/core';
import { expectEqual } from '../expectations.js';
import type { ProviderHarness } from '../provider-harness.js';
import { firstLabel } from '../provider-config.js';
import type { RuleGroup, Rule } from '../rule.js';
import type { RuleContext } from '../rule-context.js';
import type { FaultKind } from '../driver-fixture.js';
import { watch } from '../watched.js';

export const errors: RuleGroup = {
  title: 'Errors',
  text: 'One table in core says what each code means: whether to try again, when, and whether the label goes out of service. So the code must be right, and the outcome more so.',
  rules: [
    refusal(
      'quota',
      'quota',
      'The launcher waits until there is room. As any other error it would use up the attempts of the request and fail it.',
    ),
    refusal('capacity', 'capacity', 'The launcher tries another zone or later. It is no fault of the configuration.'),
    refusal(
      'invalid',
      'configuration',
      'A second refusal takes the label out of service, with the reason, until a later attempt succeeds. As a passing error it would be tried for ever.',
    ),
    refusal('auth', 'auth', 'The operator has to do something; the label is not at fault.'),
    {
      id: 'errors.throttled',
      since: '1.0',
      title: 'throttling ends with `throttled` and the time to wait, or is waited for',
      text: 'A call that was one too many was not done. The driver waits and calls again, or rejects with `ThrottledError` and `retryAfterMs` as the cloud said it. It uses up none of the attempts of a request.',
      needs: ['fault:create:throttle', 'resources'],
      check: async (context: RuleContext): Promise<void> => {
        const harness = await context.start();
        await harness.plan('create', 'throttle');
        const launch = harness.launch();
        await harness.ended(launch, 'the launch');
        if (launch.ending?.ok !== true) {
          const { code, outcome } = await harness.failureOf(launch, 'the launch');
          expectEqual(
            { code, outcome },
            { code: 'throttled', outcome: 'not-applied' },
            'the error of a creation that was throttled',
          );
        }
        const expected = launch.ending?.ok === true ? 1 : 0;
        expectEqual((await harness.instances()).length, expected, 'instances after a creation that was throttled');
      },
    },
    {
      id: 'errors.list',
      since: '1.0',
      title: 'lists fail with errors that say why',
      text: 'A `DriverError` with the code `transient` (or `timeout`) for what may pass. The launcher goes on with what it knew, and asks again.',
      needs: ['fault:list:refuse'],
      check: async (context: RuleContext): Promise<void> => {
        const harness = await context.start();
        await harness.plan('list', 'refuse');
        const listing = harness.provider.listNodes(harness.call());
        await harness.failureOf(listing, 'a list that met an internal error of the cloud', 'transient', 'timeout');
      },
    },
    {
      id: 'errors.list-auth',
      since: '1.0',
      title: 'refused credentials are told as such, by lists too',
      text: 'Credentials expire in the middle of the night. That the list fails with `auth` is what the operator reads in the morning.',
      needs: ['fault:list:auth'],
      check: async (context: RuleContext): Promise<void> => {
        const harness = await context.start();
        await harness.plan('list', 'auth');
        const listing = watch(harness.provider.listNodes(harness.call()));
        await harness.ended(listing, 'the list');
        // The driver may have logged in again successfully.
        if (listing.ending?.ok === false)
          await harness.failureOf(listing, 'a list whose credentials are refused', 'auth');
      },
    },
    {
      id: 'errors.start',
      since: '1.0',
      title: 'a provider that cannot start says why, and can be started again',
      text: '`start` is called again, on the same provider, until it succeeds: what failed before must not stand in the way.',
      needs: ['fault:any:auth'],
      check: async (context: RuleContext): Promise<void> => {
        const harness = await context.open();
        const { provider, context: providerContext, apiCalls } = harness.make();
        expectEqual(apiCalls.length, 0, 'remote calls before `start`');
        await harness.plan('any', 'auth');
        const start = watch(provider.start(providerContext));
        await harness.ended(start, 'the start');
        if (start.ending?.ok === false) {
          await harness.failureOf(start, 'a start whose credentials are refused', 'auth');
          await harness.finish(provider.start(providerContext), 'the second start');
        }
        // A driver that makes no call in `start` meets the error in its first call, which may fail.
        await harness.ended(watch(harness.provider.listNodes(harness.call())), 'the first list');
        await harness.launched();
      },
    },
  ],
};

export const amounts: RuleGroup = {
  title: 'Quota and zones',
  text: 'The launcher keeps the books of what is in use. The driver says what the cloud allows, and what a node takes.',
  rules: [
    {
      id: 'quota.limits',
      since: '1.0',
      title: 'the limits of the cloud are told in total, and as they are now',
      text:
        '`getQuotaLimits` gives what the account may have, not what is left of it: core subtracts what is in use. Resources without limit are not named, or -1, or Infinity. A limit that ' +
        'was changed is seen at the next call, or within five minutes when the driver keeps it.',
      needs: ['quota'],
      check: async (context: RuleContext): Promise<void> => {
        const harness = await context.start();
        await harness.able('setQuota')({ instances: 7 });
        await harness.launched();
        expectEqual(
          await instanceLimit(harness),
          7,
          'instances that may exist, of a quota of 7 of which one is in use',
        );
        await harness.able('setQuota')({ instances: 3 });
        await harness.pass(300_000);
        expectEqual(await instanceLimit(harness), 3, 'instances that may exist, of a quota that was reduced to 3');
      },
    },
    {
      id: 'quota.label',
      since: '1.0',
      title: 'what a label needs is what its instances take',
      text: '`getQuotaForLabel`, if there is one, counts one instance, and the same amounts that the launched instance has in `resources`. The books do not balance otherwise.',
      needs: [],
      check: async (context: RuleContext): Promise<void> => {
        const harness = await context.start();
        const { provider } = harness;
        const { pool, label } = firstLabel(provider.config);
        if (provider.getQuotaForLabel === undefined) return;
        const asked = provider.getQuotaForLabel(pool.name, label.name, harness.call());
        const need = await harness.finish(asked, 'reading what a label needs');
        expectEqual(need.get('instances'), 1, 'instances that a node of the label needs');
        const { resources } = await harness.launched();
        for (const [resource, amount] of Object.entries(need.toResources())) {
          expectEqual(resources?.[resource] ?? 0, amount, `the amount of ${resource} that a launched instance has`);
        }
      },
    },
    {
      id: 'quota.machine-type',
      since: '1.2',
      title: 'the need of a label depends on the machine type',
      text: '`getQuotaForLabel` receives one of the `machineTypes` of the label and returns the resources of a node of this type. Without a machine type it returns those of the first one. The launcher would otherwise refuse a small alternative that fits, or exceed a limit with a large one.',
      needs: ['machine-types'],
      check: async (context: RuleContext): Promise<void> => {
        const harness = await context.start();
        const { needs } = await machineTypeNeeds(harness);
        const [first, ...others] = needs.map((need) => JSON.stringify(need));
        assert.ok(
          others.some((need) => need !== first),
          `the machine types of the label need the same resources, ${first ?? 'none'}; the test cloud needs different ones`,
        );
        const byDefault = await needOfMachineType(harness, undefined);
        expectEqual(JSON.stringify(byDefault), first, 'the need of the label without a machine type');
      },
    },
    {
      id: 'machine-types.honoured',
      since: '1.2',
      title: 'an instance has the machine type that was chosen',
      text: 'A launch with a `machineType` creates an instance of this type, and one without creates an instance of the first type of the label. The `resources` of the instance show it.',
      needs: ['machine-types'],
      check: async (context: RuleContext): Promise<void> => {
        const harness = await context.start();
        const { machineTypes, needs } = await machineTypeNeeds(harness);
        for (const [index, machineType] of [...machineTypes.entries(), [0, undefined] as const]) {
          const launched = await harness.launched(harness.node(), { ...harness.able('machineTypeLabel'), machineType });
          for (const [resource, amount] of Object.entries(needs[index] ?? {})) {
            const what = `the amount of ${resource} that an instance of machine type ${machineType ?? '(none given)'} has`;
            expectEqual(launched.resources?.[resource] ?? 0, amount, what);
          }
        }
      },
    },
    {
      id: 'zones.honoured',
      since: '1.0',
      title: 'an instance is made in the zone that was chosen',
      text: 'All nodes of a request are in one zone. `getAvailabilityZones` gives the zones of the pool, in its order; a launch with one of them makes the instance there, and says so in `az`.',
      needs: ['zones'],
      check: async (context: RuleContext): Promise<void> => {
        const harness = await context.start();
        const { provider } = harness;
        const { pool } = firstLabel(provider.config);
        const zones = await harness.finish(
          provider.getAvailabilityZones?.(pool.name, harness.call()) ?? Promise.resolve([]),
        );
        assert.ok(zones.length > 0, 'the test cloud can do "zones", and the driver offers none');
        for (const zone of zones) {
          const { az } = await harness.launched(harness.node(), { availabilityZone: zone });
          expectEqual(az, zone, 'the zone of an instance');
        }
      },
    },
  ],
};

/** Resolves with the machine types of the test cloud's label and the resources that each needs. */
async function machineTypeNeeds(
  harness: ProviderHarness,
): Promise<{ readonly machineTypes: readonly string[]; readonly needs: readonly Resources[] }> {
  const { pool, label } = harness.able('machineTypeLabel');
  const { machineTypes = [] } = harness.provider.config.pools.get(pool)?.labels.get(label) ?? {};
  assert.ok(machineTypes.length > 1, `label ${label} of pool ${pool} has no alternative machine types`);
  const needs: Resources[] = [];
  for (const machineType of machineTypes) needs.push(await needOfMachineType(harness, machineType));
  return { machineTypes, needs };
}

async function needOfMachineType(harness: ProviderHarness, machineType: string | undefined): Promise<Resources> {
  const { pool, label } = harness.able('machineTypeLabel');
  const asked = harness.provider.getQuotaForLabel?.(pool, label, harness.call(), machineType);
  assert.ok(asked !== undefined, 'the test cloud can do "machine-types", and the driver has no getQuotaForLabel');
  return (await harness.finish(asked, 'reading what a label needs')).toResources();
}

/** Returns a rule for the error code of a creation that the cloud refuses. */
function refusal(kind: FaultKind, code: DriverErrorCode, why: string): Rule {
  const outcome: Outcome = 'not-applied';
  return {
    id: `errors.${code}`,
    since: '1.0',
    title: `a creation that the cloud refuses ends with \`${code}\`, not applied: ${meaning(kind)}`,
    text: why,
    needs: [`fault:create:${kind}`, 'resources'],
    check: async (context: RuleContext): Promise<void> => {
      const harness = await context.start();
      await harness.plan('create', kind);
      const error = await harness.failureOf(harness.launch(), 'a launch that the cloud refuses');
      const found = { code: error.code, outcome: error.outcome };
      expectEqual(found, { code, outcome }, `code and outcome of "${error.message}"`);
      await harness.assertNothingLeft('after a creation that was refused');
    },
  };
}

function meaning(kind: FaultKind): string {
  switch (kind) {
    case 'quota':
      return 'more than the account may have';
    case 'capacity':
      return 'no room at the moment';
    case 'auth':
      return 'credentials that are refused';
    default:
      return 'something that it does not have, or does not allow';
  }
}

async function instanceLimit(harness: ProviderHarness): Promise<number> {
  const limits = harness.provider.getQuotaLimits?.(harness.call());
  assert.ok(limits !== undefined, 'the test cloud can do "quota", and the driver has no getQuotaLimits');
  return (await harness.finish(limits, 'reading the quota')).get('instances');
}
