/** Reads of lists in sections of the configuration. */

import { describe, expect, it } from '@jest/globals';
import { entryNamed, loadCommonProvider, type JsonValue } from '@nodepool/core';
import { checkProviderReferences } from '../src/references.js';

/** Returns the list, and a function that returns how often an entry of it was read. */
function counted(list: readonly JsonValue[]): { list: readonly JsonValue[]; reads: () => number } {
  let reads = 0;
  const proxy = new Proxy(list, {
    get: (target, key, receiver) => {
      if (typeof key === 'string' && /^\d+$/.test(key)) reads += 1;
      return Reflect.get(target, key, receiver) as unknown;
    },
  });
  return { list: proxy, reads: () => reads };
}

describe('entryNamed', () => {
  it('returns the first of two entries with the name', () => {
    const section = { list: [{ name: 'a' }, 'text', { name: 'b', nr: 1 }, { name: 'b', nr: 2 }, {}] };
    expect(entryNamed(section, 'list', 'b')).toEqual({ index: 2, name: 'b', section: { name: 'b', nr: 1 } });
    expect(entryNamed(section, 'list', 'c')).toBeUndefined();
    expect(entryNamed(section, 'other', 'b')).toBeUndefined();
  });
});

describe('a provider with many labels', () => {
  const IMAGES = 50;
  const names = Array.from({ length: IMAGES }, (_, index) => `image-${index}`);
  const labels = Array.from({ length: 1000 }, (_, index) => ({
    name: `label-${index}`,
    'cloud-image': `image-${index % IMAGES}`,
  }));
  const images = names.map((name) => ({ name }));
  const known = new Set(labels.map(({ name }) => name));

  it('reads its images once, not once per label', () => {
    const { list, reads } = counted(images);
    const section = { name: 'cloud', 'cloud-images': list, pools: [{ name: 'main', labels }] };
    const context = { diskImages: new Map(), labels: known, problem: () => undefined, unserved: () => undefined };
    const provider = loadCommonProvider(section, context, {
      defaults: { bootTimeoutSeconds: 60, rateUnit: 'calls-per-second' },
      loadLabel: (label) => label,
      loadPool: (pool) => pool,
    });
    expect(provider.pools.get('main')?.labels.size).toBe(1000);
    expect(reads()).toBe(IMAGES);
  });

  it('reads its images a few times while its references are checked, not once per label', () => {
    const { list, reads } = counted(images);
    const section = { name: 'cloud', 'cloud-images': list, pools: [{ name: 'main', labels }] };
    const problems: unknown[] = [];
    const report = (path: unknown): unknown => problems.push(path);
    checkProviderReferences(section, { diskImages: new Map(), labels: known }, report, report);
    expect(problems).toEqual([]);
    expect(reads()).toBe(2 * IMAGES);
  });
});
