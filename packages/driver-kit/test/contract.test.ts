/** The kit's interfaces to test runners and to the documentation. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import {
  RULE_GROUPS,
  contractPage,
  describeDriverContract,
  driverContract,
  type DriverFixture,
  type TestCloud,
  type TestRunner,
} from '../src/index.js';
import { acmeFixture } from './support/acme-fixture.js';

/** Returns a runner that records the declared tests. */
function noting(): { readonly runner: TestRunner; readonly declared: string[] } {
  const declared: string[] = [];
  const it = Object.assign((name: string) => declared.push(name), {
    skip: (name: string) => declared.push(`skipped: ${name}`),
  });
  return { declared, runner: { it, describe: (_name, body) => body() } };
}

describe('the rules', () => {
  const rules = RULE_GROUPS.flatMap((group) => group.rules);

  it('have unique ids', () => {
    expect(new Set(rules.map(({ id }) => id)).size).toBe(rules.length);
  });

  it('have a title and a text', () => {
    for (const { title, text, since } of rules) {
      expect(title).not.toBe('');
      expect(text.length).toBeGreaterThan(40);
      expect(since).toMatch(/^\d+\.\d+$/);
    }
  });

  it('are on the contract page of the documentation', () => {
    const file = join(__dirname, '..', '..', '..', 'docs', 'driver-contract.md');
    // After a change of the rules, run: pnpm --filter @nodepool/driver-kit contract
    expect(readFileSync(file, 'utf8')).toBe(contractPage());
  });
});

describe('the cases of a driver', () => {
  it('are declared as tests, and skipped with the reason if they cannot run', () => {
    const fixture: DriverFixture = {
      ...acmeFixture(),
      can: ['times'],
      exempt: { 'life.launch': 'this cloud has no addresses' },
    };
    const { runner, declared } = noting();
    describeDriverContract(fixture, runner);
    expect(declared).toHaveLength(RULE_GROUPS.flatMap((group) => group.rules).length);
    expect(declared).toContainEqual(
      expect.stringMatching(/^skipped: life\.launch: .*\(not checked: this cloud has no addresses\)$/),
    );
    expect(declared).toContainEqual(
      expect.stringMatching(/^skipped: life\.delete: .*the test cloud lacks resources\)$/),
    );
    expect(declared).toContainEqual(expect.stringMatching(/^life\.ready: /));
  });

  it('cannot be created with an exemption from an unknown rule', () => {
    const fixture = { ...acmeFixture(), exempt: { 'life.lunch': 'no time' } };
    expect(() => driverContract(fixture)).toThrow('there is no rule life.lunch');
  });

  it('fail if the test cloud lacks the method of an ability', async () => {
    const fixture: DriverFixture = {
      ...acmeFixture(),
      open: async () => {
        const cloud = await acmeFixture().open();
        return { ...cloud, setTimes: undefined as never };
      },
    };
    const ready = driverContract(fixture).find(({ rule }) => rule.id === 'life.ready');
    await expect(ready?.run()).rejects.toThrow('TestCloud.setTimes, which is missing');
  });

  it('stop all processes and close the cloud, also if a process does not stop', async () => {
    const stopped: string[] = [];
    let processes = 0;
    const fixture = acmeFixture({
      driver: (driver) => ({
        ...driver,
        getProvider: (config) => {
          const provider = driver.getProvider(config);
          processes += 1;
          const name = `process ${processes}`;
          const join = provider.join.bind(provider);
          provider.join = async () => {
            await join();
            stopped.push(name);
            if (name === 'process 1') throw new Error('it cannot be stopped');
          };
          return provider;
        },
      }),
    });
    const open = async (): Promise<TestCloud> => {
      const cloud = await fixture.open();
      return { ...cloud, close: () => void stopped.push('cloud') };
    };
    const twice = driverContract({ ...fixture, open }).find(({ rule }) => rule.id === 'life.delete-twice');

    await expect(twice?.run()).rejects.toThrow('it cannot be stopped');
    expect(stopped).toEqual(['process 1', 'process 2', 'cloud']);
  });
});
