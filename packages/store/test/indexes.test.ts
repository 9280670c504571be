/** Indexes, compared with sorted lists. */

import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Index } from '../src/indexes.js';

interface Entry {
  readonly id: string;
  readonly key: string | undefined;
}

describe('an index', () => {
  it('has the ids of every key in order, and its snapshots never change', () => {
    const change = fc.record({ number: fc.nat(40), key: fc.constantFrom('a', 'b', undefined), look: fc.boolean() });
    fc.assert(
      fc.property(fc.array(change, { maxLength: 300 }), (changes) => {
        const index = new Index<Entry>(({ key }) => key);
        const entries = new Map<string, Entry>();
        const idsOf = (wanted: string): string[] =>
          [...entries.values()].flatMap(({ id, key }) => (key === wanted ? [id] : [])).sort();
        const snapshots: { readonly ids: readonly string[]; readonly copy: readonly string[] }[] = [];
        for (const { number, key, look } of changes) {
          const id = String(number).padStart(3, '0');
          const after = key === undefined ? undefined : { id, key };
          index.update(entries.get(id), after);
          if (after === undefined) entries.delete(id);
          else entries.set(id, after);
          for (const each of ['a', 'b']) {
            expect(index.present(each, entries).map((entry) => entry.id)).toEqual(idsOf(each));
            if (!look) continue;
            const ids = index.ids(each);
            expect(ids).toEqual(idsOf(each));
            snapshots.push({ ids, copy: [...ids] });
          }
        }
        for (const { ids, copy } of snapshots) expect(ids).toEqual(copy);
      }),
      { seed: 7, numRuns: 60 },
    );
  });

  it('has the remaining ids when they leave in the order in which they came', () => {
    const index = new Index<Entry>(({ key }) => key);
    const ids = Array.from({ length: 100 }, (_, number) => String(number).padStart(3, '0'));
    for (const id of ids) index.update(undefined, { id, key: 'a' });
    const left = [...ids];
    // Two steps ahead of the first, as records whose work ends a little earlier.
    while (left.length > 0) {
      const [id = ''] = left.splice(Math.min(2, left.length - 1), 1);
      index.update({ id, key: 'a' }, undefined);
      if (left.length % 7 === 0) expect(index.ids('a')).toEqual(left);
    }
    expect(index.ids('a')).toEqual([]);
  });
});
