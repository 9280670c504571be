import assert from 'node:assert/strict';
import type { DriverErrorCode, Outcome, Resources } from '@nodepool/core';
import { expectEqual } from '../expectations.js';
import type { ProviderHarness } from '../provider-harness.js';
import { firstLabel } from '../provider-config.js';
import { textsIn } from '../recording-logger.js';
import type { RuleGroup, Rule } from '../rule.js';
import { fromStart, type RuleContext } from '../rule-context.js';
import type { FaultKind } from '../driver-fixture.js';
import { watch } from '../watched.js';

/** Number of calls that get an answer with a secret. */
const MAX_ECHOES = 8;
/** Maximum number of characters of a text in messages. */
const MAX_TEXT = 300;

export const errors: RuleGroup = {
  title: 'Errors',
  text: '',
  rules: [
    refusal(
      'quota',
      'quota',
      'The launcher waits until quota is available. Any other code would use up the request’s attempts and make ' +
        'it fail.',
    ),
    refusal(
      'capacity',
      'capacity',
      'The launcher tries another zone, or retries later. The configuration is not at fault.',
    ),
    refusal(
      'invalid',
      'configuration',
      'After a second such error the launcher takes the label out of service, with the reason, until a later ' +
        'attempt succeeds. With a temporary error the launcher would retry without an end. A refusal that may pass ' +
        'without an operator ends with `refused` instead: the label is out of service only if it persists for minutes.',
    ),
    refusal('auth', 'auth', 'Only the operator can resolve this; the label is not at fault.'),
    {
      id: 'errors.throttled',
      since: '1.0',
      title: 'throttling is waited out, or fails with `throttled` and `retryAfterMs`',
      text:
        'A throttled call had no effect. The driver waits and repeats it, or rejects with `ThrottledError` and ' +
        'the cloud’s wait time as `retryAfterMs`. It does not use up an attempt of the request.',
      needs: ['fault:create:throttle', 'resources'],
      check: fromStart(async (harness) => {
        await harness.plan('create', 'throttle');
        const launch = harness.launch();
        await harness.ended(launch, 'the launch');
        if (launch.settled?.ok !== true) {
          const { code, outcome } = await harness.failureOf(launch, 'the launch');
          expectEqual(
            { code, outcome },
            { code: 'throttled', outcome: 'not-applied' },
            'the error of a creation that was throttled',
          );
        }
        const expected = launch.settled?.ok === true ? 1 : 0;
        expectEqual((await harness.instances()).length, expected, 'instances after a creation that was throttled');
      }),
    },
    {
      id: 'errors.list',
      since: '1.0',
      title: 'a failed listing rejects with a `DriverError`, `transient` or `timeout` if it may pass',
      text:
        'The error is a `DriverError`, with the code `transient` or `timeout` if a retry may succeed. The ' +
        'launcher continues with the last listing and retries.',
      needs: ['fault:list:refuse'],
      check: fromStart(async (harness) => {
        await harness.plan('list', 'refuse');
        const listing = harness.provider.listNodes(harness.call());
        await harness.failureOf(listing, 'a list that met an internal error of the cloud', 'transient', 'timeout');
      }),
    },
    {
      id: 'errors.list-auth',
      since: '1.0',
      title: 'refused credentials end a listing with `auth`',
      text: 'Credentials can expire at any time. The code tells the operator what to do.',
      needs: ['fault:list:auth'],
      check: fromStart(async (harness) => {
        await harness.plan('list', 'auth');
        const listing = watch(harness.provider.listNodes(harness.call()));
        await harness.ended(listing, 'the list');
        // The driver may have logged in again successfully.
        if (listing.settled?.ok === false)
          await harness.failureOf(listing, 'a list whose credentials are refused', 'auth');
      }),
    },
    {
      id: 'errors.start',
      since: '1.0',
      title: 'a provider that fails to start reports why, and can be started again',
      text:
        'The launcher calls `start` of the same provider again until it succeeds. A failed start must not affect ' +
        'the next one.',
      needs: ['fault:any:auth'],
      check: async (context: RuleContext): Promise<void> => {
        const harness = await context.open();
        const { provider, context: providerContext, apiCalls } = harness.make();
        expectEqual(apiCalls.length, 0, 'remote calls before `start`');
        await harness.plan('any', 'auth');
        const start = watch(provider.start(providerContext));
        await harness.ended(start, 'the start');
        if (start.settled?.ok === false) {
          await harness.failureOf(start, 'a start whose credentials are refused', 'auth');
          await harness.finish(provider.start(providerContext), 'the second start');
        }
        // A driver that makes no call in `start` meets the error in its first call, which may fail.
        await harness.ended(watch(harness.provider.listNodes(harness.call())), 'the first list');
        await harness.launched();
      },
    },
    {
      id: 'errors.secrets',
      since: '1.4',
      title: 'errors, causes and log lines contain no passwords or tokens',
      text:
        'Logs, records of requests and the status page show the texts of errors, with their causes. An answer can repeat ' +
        'the request: proxies and gateways do so in their error pages. The kit sends such a page to the first call of a ' +
        'list, a launch and a deletion, then to the second, and so on.',
      needs: ['fault:any:echo', 'secrets'],
      check: fromStart(async (harness) => {
        for (let skip = 0; skip < MAX_ECHOES; skip += 1) {
          await harness.plan('any', 'echo', skip);
          const list = watch(harness.provider.listNodes(harness.call()));
          await harness.ended(list, 'a list');
          const launch = harness.launch();
          await harness.ended(launch, 'a launch');
          const externalId = launch.settled?.ok === true ? launch.settled.value.externalId : null;
          const deletion = harness.startCleanUp(launch.node, launch.saved?.externalId ?? externalId);
          await harness.ended(deletion, 'a deletion');
          const ends = [list, launch, deletion].map(({ settled }) =>
            settled?.ok === false ? settled.error : undefined,
          );
          const texts = [...harness.logged, ...ends.flatMap((error) => textsIn(error))];
          const secrets = harness.able('secrets')();
          assert.ok(secrets.length > 0, 'the test cloud declares no secret, see `TestCloud.secrets`');
          const leak = texts.find((text) => secrets.some((secret) => text.includes(secret)));
          assert.ok(leak === undefined, `an error or a log line contains a secret: ${leak?.slice(0, MAX_TEXT) ?? ''}`);
        }
      }),
    },
  ],
};

export const amounts: RuleGroup = {
  title: 'Quota and zones',
  text: '',
  rules: [
    {
      id: 'quota.limits',
      since: '1.0',
      title: '`getQuotaLimits` returns totals, at most five minutes old; unlimited ones are absent, -1 or Infinity',
      text:
        '`getQuotaLimits` returns the account’s total limits, not the remaining amounts: core subtracts the ' +
        'usage. Unlimited resources are omitted, or -1, or Infinity. A changed limit is returned by the next ' +
        'call, or within five minutes if the driver caches it.',
      needs: ['quota'],
      check: fromStart(async (harness) => {
        await harness.able('setQuota')({ instances: 7 });
        await harness.launched();
        expectEqual(await instanceLimit(harness), 7, 'the instance limit with a quota of 7 and one instance in use');
        await harness.able('setQuota')({ instances: 3 });
        await harness.pass(300_000);
        expectEqual(await instanceLimit(harness), 3, 'the instance limit after the quota was reduced to 3');
      }),
    },
    {
      id: 'quota.label',
      since: '1.0',
      title: '`getQuotaForLabel` returns the `resources` of a launched instance',
      text:
        '`getQuotaForLabel`, if implemented, returns one instance, and the same amounts as `resources` of a ' +
        'launched instance. Otherwise the quota is computed incorrectly.',
      check: fromStart(async (harness) => {
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
      }),
    },
    {
      id: 'quota.machine-type',
      since: '1.2',
      title: '`getQuotaForLabel` considers the machine type, by default the first one',
      text:
        '`getQuotaForLabel` receives one of the label’s `machineTypes` and returns the resources of a node of ' +
        'that type; without a machine type, those of the first one. Otherwise the launcher would refuse a smaller ' +
        'type that fits, or exceed a limit with a larger one.',
      needs: ['machine-types'],
      check: fromStart(async (harness) => {
        const { needs } = await machineTypeNeeds(harness);
        const [first, ...others] = needs.map((need) => JSON.stringify(need));
        assert.ok(
          others.some((need) => need !== first),
          `the machine types of the label need the same resources, ${first ?? 'none'}; the test cloud needs different ones`,
        );
        const byDefault = await needOfMachineType(harness, undefined);
        expectEqual(JSON.stringify(byDefault), first, 'the need of the label without a machine type');
      }),
    },
    {
      id: 'machine-types.honoured',
      since: '1.2',
      title: 'an instance has the requested machine type, by default the first one',
      text:
        'A launch with a `machineType` creates an instance of that type; without one, an instance of the label’s ' +
        'first type. The instance’s `resources` show its type.',
      needs: ['machine-types'],
      check: fromStart(async (harness) => {
        const { machineTypes, needs } = await machineTypeNeeds(harness);
        for (const [index, machineType] of [...machineTypes.entries(), [0, undefined] as const]) {
          const launched = await harness.launched(harness.node(), { ...harness.able('machineTypeLabel'), machineType });
          for (const [resource, amount] of Object.entries(needs[index] ?? {})) {
            const what = `the amount of ${resource} that an instance of machine type ${machineType ?? '(none given)'} has`;
            expectEqual(launched.resources?.[resource] ?? 0, amount, what);
          }
        }
      }),
    },
    {
      id: 'zones.honoured',
      since: '1.0',
      title: 'an instance is created in the requested zone of `getAvailabilityZones`',
      text:
        'All nodes of a request are in one zone. `getAvailabilityZones` returns the zones of the pool in the ' +
        'configured order. A launch with one of them creates the instance there and returns it as `az`.',
      needs: ['zones'],
      check: fromStart(async (harness) => {
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
      }),
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
    title: `a creation ends with \`${code}\`, not applied, because of ${meaning(kind)}`,
    text: why,
    needs: [`fault:create:${kind}`, 'resources'],
    check: fromStart(async (harness) => {
      await harness.plan('create', kind);
      const error = await harness.failureOf(harness.launch(), 'a launch that the cloud refuses');
      const found = { code: error.code, outcome: error.outcome };
      expectEqual(found, { code, outcome }, `code and outcome of "${error.message}"`);
      await harness.assertNothingLeft('after a creation that was refused');
    }),
  };
}

function meaning(kind: FaultKind): string {
  switch (kind) {
    case 'quota':
      return 'an exceeded quota';
    case 'capacity':
      return 'missing capacity';
    case 'auth':
      return 'refused credentials';
    default:
      return 'an invalid request';
  }
}

async function instanceLimit(harness: ProviderHarness): Promise<number> {
  const limits = harness.provider.getQuotaLimits?.(harness.call());
  assert.ok(limits !== undefined, 'the test cloud can do "quota", and the driver has no getQuotaLimits');
  return (await harness.finish(limits, 'reading the quota')).get('instances');
}
