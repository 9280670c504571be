/** Differences between configurations after a change of the file. */

import { describe, expect, it } from '@jest/globals';
import type { NodepoolConfig } from '@nodepool/config';
import { diffConfig, type ConfigDiff } from '../src/diff.js';
import { configOf } from './files.js';

const BEFORE = `
labels: [{name: a}, {name: b}]
diskimages: [{name: noble, parent: base}, {name: jammy}, {name: base}]
providers:
  - {name: one, cloud: x, diskimages: [{name: noble}], pools: [{name: main, labels: [{name: a, diskimage: noble, min-ram: 1}]}]}
  - {name: two, cloud: x, diskimages: [{name: jammy}], pools: [{name: main, labels: [{name: b, diskimage: jammy, min-ram: 1}]}]}
tenant-resource-limits: [{tenant-name: t, max-cores: 1}]
`;

async function diff(...replacements: (readonly [string, string])[]): Promise<ConfigDiff> {
  const after = replacements.reduce((text, [from, to]) => text.replace(from, to), BEFORE);
  return diffConfig(await configOf(BEFORE), await configOf(after));
}

const none = { added: [], removed: [], changed: [] };

describe('the difference of two configurations', () => {
  it('is empty when only the formatting differs', async () => {
    expect((await diff(['cloud: x,', '"cloud": "x", '])).empty).toBe(true);
  });

  it('names added, removed and changed providers', async () => {
    const changed = await diff(['name: one, cloud: x', 'name: one, cloud: y'], ['name: two', 'name: three']);
    expect(changed).toMatchObject({
      empty: false,
      providers: { added: ['three'], removed: ['two'], changed: ['one'] },
    });
    expect(changed.labels).toEqual(none);
  });

  it('names a provider whose image format differs, unless it is a guess', async () => {
    const before = await configOf(BEFORE);
    const one = before.providers.get('one');
    if (one === undefined) throw new Error('there is no provider one');
    const after = { ...before, providers: new Map([...before.providers, ['one', { ...one, imageFormat: 'raw' }]]) };
    expect(diffConfig(before, after).providers.changed).toEqual(['one']);
    expect(diffConfig(before, { ...after, unserved: new Set(['one']) }).empty).toBe(true);
  });

  it.each(['username: ci', 'python-path: /opt/python', 'shell-type: csh', 'metadata: {os: linux}'])(
    'names a provider that inherits %s from a disk image, also through a parent',
    async (setting) => {
      const changed = await diff(['{name: base}', `{name: base, ${setting}}`]);
      expect(changed.diskImages).toEqual({ ...none, changed: ['base', 'noble'] });
      expect(changed.providers).toEqual({ ...none, changed: ['one'] });
    },
  );

  it('is a setting, and restarts no provider, if prices or fair shares changed', async () => {
    const prices = 'name: one, prices: {currency: EUR, types: {m1: 1}}, cloud: x';
    for (const changed of [
      await diff(['name: one, cloud: x', prices]),
      await diff(['tenant-resource-limits', 'fair-shares: {half-life: 60}\ntenant-resource-limits']),
    ]) {
      expect(changed).toMatchObject({ empty: false, settings: true, providers: none });
    }
  });

  it('names no provider when only the build of its disk image changed', async () => {
    const changed = await diff(['{name: base}', '{name: base, elements: [vm], rebuild-age: 60}']);
    expect(changed.diskImages).toEqual({ ...none, changed: ['base', 'noble'] });
    expect(changed.providers).toEqual(none);
  });

  it('names the providers of a driver name that refers to another package, although the file is unchanged', async () => {
    const config = await configOf(BEFORE);
    const using = (folder: string): NodepoolConfig => {
      const from = { name: 'openstack', package: 'p', version: '1.0.0', api: 1, folder, warnings: [] };
      return { ...config, driverPackages: new Map([['openstack', from]]) };
    };
    expect(diffConfig(using('/p'), using('/p')).empty).toBe(true);
    expect(diffConfig(using('/p'), using('/q'))).toMatchObject({
      empty: false,
      providers: { ...none, changed: ['one', 'two'] },
      drivers: { ...none, changed: ['openstack'] },
    });
  });

  it('names labels, tenants and settings of the whole process', async () => {
    const changed = await diff(
      ['{name: b}', '{name: b, min-ready: 1}, {name: c}'],
      ['max-cores: 1', 'max-cores: 2'],
      ['\nlabels', '\nwebapp: {port: 1}\nmax-hold-age: 3\nzookeeper-servers: [{host: h}]\nlabels'],
    );
    expect(changed).toEqual({
      empty: false,
      providers: none,
      brokenProviders: none,
      labels: { added: ['c'], removed: [], changed: ['b'] },
      diskImages: none,
      tenantLimits: { ...none, changed: ['t'] },
      drivers: none,
      zookeeper: true,
      webapp: true,
      settings: true,
    });
  });
});
