/** Drivers of a configuration: their discovery, the problems that they report, and drivers that cannot be loaded. */

import { describe, expect, it } from '@jest/globals';
import { formatProblem } from '@nodepool/config';
import type { Driver } from '@nodepool/core';
import { configOf, loadText, placesOf, problemsOf, PROVIDER } from './files.js';
import { gce, only, openstack } from './stand-in-drivers.js';

describe('drivers', () => {
  const twoClouds = `${PROVIDER}  - {name: gone, driver: gce, project: p, region: r, zone: z}\n`;

  it('that cannot be loaded disable only their own providers', async () => {
    const result = await loadText(twoClouds, { discoverDriver: only(openstack) });
    expect(result.ok).toBe(true);
    if (!result.ok) return;
    expect([...result.config.providers.keys()]).toEqual(['cloud']);
    expect(result.config.brokenProviders.get('gone')).toEqual({ driver: 'gce', reason: 'there is no gce; install it' });
    expect(placesOf(result.warnings)).toEqual(['12:26 providers[1].driver']);
    expect(result.warnings.map(formatProblem)).toEqual([
      expect.stringMatching(
        /: expected a driver that works, found "gce"; there is no gce; install it; this provider is/,
      ),
    ]);
    expect([...result.unserved]).toEqual(['gone']);
  });

  it.each<[string, Partial<Driver>, string]>([
    [
      'throw',
      {
        getProviderConfig: () => {
          throw new Error('oops');
        },
      },
      'oops',
    ],
    ['return nonsense', { getProviderConfig: () => 5 as never }, 'not the configuration'],
    ['have a wrong schema', { schema: { type: 'nothing' } }, 'schema of the driver is wrong'],
  ])('that %s are treated as not loadable', async (_what, faulty, reason) => {
    const result = await loadText(twoClouds, { discoverDriver: only(openstack, { ...gce, ...faulty }) });
    expect(result.ok && [...result.config.providers.keys()]).toEqual(['cloud']);
    expect(result.ok && result.config.brokenProviders.get('gone')?.reason).toContain(reason);
  });

  it('report problems with positions in their section', async () => {
    const strictDriver: Driver = {
      ...openstack,
      getProviderConfig: (section, context) => {
        context.problem(['pools', 0, 'labels', 0, 'min-ram'], { expected: 'more memory', hint: 'buy some' });
        return openstack.getProviderConfig(section, context);
      },
    };
    const problems = await problemsOf(PROVIDER, { discoverDriver: only(strictDriver) });
    expect(problems.map(formatProblem)).toEqual([
      expect.stringMatching(
        /nodepool\.yaml:11:54: providers\[0\]\.pools\[0\]\.labels\[0\]\.min-ram: expected more memory, found 1; buy some$/,
      ),
    ]);
  });

  it('read each provider in a separate turn of the event loop', async () => {
    let turn = 0;
    const turns: number[] = [];
    const counting: Driver = {
      ...openstack,
      getProviderConfig: (section, context) => {
        turns.push(turn);
        setImmediate(() => (turn += 1));
        return openstack.getProviderConfig(section, context);
      },
    };
    const names = ['a', 'b', 'c', 'd'];
    await configOf(`providers: [${names.map((name) => `{name: ${name}, cloud: here}`).join(', ')}]\n`, {
      discoverDriver: only(counting),
    });
    expect(new Set(turns).size).toBe(names.length);
  });

  it('are searched by the names and in the folders of the file and the caller', async () => {
    const asked: unknown[] = [];
    await loadText(
      'drivers: [{name: x, package: "@acme/x"}]\nproviders: [{name: a, driver: x}, {name: b, driver: x}]\n',
      {
        driverFolders: ['/site'],
        discoverDriver: (name, search) => {
          asked.push([name, [...search.aliases], search.folders]);
          return Promise.reject(new Error('none'));
        },
      },
    );
    expect(asked).toEqual([['x', [['x', '@acme/x']], ['/site']]]);
  });
});
