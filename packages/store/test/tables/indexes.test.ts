/** Indexes, compared with sorted lists. */

import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Index, KeyIndex, type Keys } from '../../src/tables/indexes.js';

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

  it('follows keys of every form', () => {
    const keys = fc.constantFrom<Keys>(undefined, null, 'a', 'b', '', [], ['a'], ['a', 'b'], ['b', '']);
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.constantFrom('1', '2', '3'), keys), { maxLength: 40 }), (changes) => {
        const index = new KeyIndex<Entry>();
        const known = new Map<string, Keys>();
        for (const [id, to] of changes) {
          index.move(id, known.get(id), to);
          known.set(id, to);
          for (const key of ['a', 'b', '']) {
            const having = [...known].filter(([, own]) => own === key || (Array.isArray(own) && own.includes(key)));
            expect(index.ids(key)).toEqual(having.map(([each]) => each).sort());
          }
        }
      }),
      { seed: 7, numRuns: 100 },
    );
  });

  it('iterates over the entries that have the key when they are reached', () => {
    const index = new KeyIndex<Entry>();
    const entries = new Map<string, Entry>();
    const add = (id: string): void => {
      index.move(id, undefined, 'a');
      entries.set(id, { id, key: 'a' });
    };
    for (const id of ['1', '2', '3', '4', '5', '6']) add(id);
    const reached: string[] = [];
    for (const { id } of index.select('a', entries)) {
      reached.push(id);
      if (id !== '2') continue;
      index.move('3', 'a', 'b');
      index.move('4', 'a', 'b');
      index.move('4', 'b', 'a');
      index.move('5', 'a', undefined);
      entries.delete('5');
      add('7');
    }
    expect(reached).toEqual(['1', '2', '4', '6']);
  });

  it('ends an iteration whose key no entry has any more', () => {
    const index = new KeyIndex<Entry>();
    const entries = new Map(['1', '2'].map((id) => [id, { id, key: 'a' }]));
    for (const id of entries.keys()) index.move(id, undefined, 'a');
    const reached: string[] = [];
    for (const { id } of index.select('a', entries)) {
      reached.push(id);
      for (const each of entries.keys()) index.move(each, 'a', 'b');
    }
    expect(reached).toEqual(['1']);
    expect(index.present('b', entries)).toHaveLength(2);
  });
});
