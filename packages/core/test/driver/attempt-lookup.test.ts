/** The search for an instance whose creation has an unknown outcome. */

import { expect, it } from '@jest/globals';
import { attemptLookup, type LookupResult } from '@nodepool/core';
import { silentLogger } from '@nodepool/core/testing';

/** Returns the results of a search in these empty listings. */
function search(...listings: readonly (readonly [round: number, askedAt: number])[]): LookupResult['found'][] {
  const lookup = attemptLookup('a', { settleRounds: 3, settleMs: 10_000 });
  const { signal } = new AbortController();
  lookup.check({ listing: undefined, log: silentLogger, signal });
  return listings.map(([round, askedAt]) => {
    const listing = { round, askedAt, byExternalId: () => undefined, allByExternalId: () => [], byTag: () => [] };
    return lookup.check({ listing, log: silentLogger, signal }).found;
  });
}

it('ends after several listings, over some time, that lack the instance', () => {
  expect(search([1, 0], [2, 5000], [3, 10_000])).toEqual(['unknown', 'unknown', 'nothing']);
  expect(search([1, 0], [2, 100], [3, 9999])).toEqual(['unknown', 'unknown', 'unknown']);
});

it('counts a listing once, even if the machine sees it repeatedly', () => {
  expect(search([1, 0], [1, 0], [2, 10_000], [2, 10_000])).not.toContain('nothing');
});
