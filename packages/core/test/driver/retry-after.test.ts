/** The header `Retry-After`. */

import { expect, it } from '@jest/globals';
import { retryAfterMsIn } from '@nodepool/core';

const NOW = Date.UTC(2026, 0, 1);

it.each([
  ['30', 30_000],
  ['0.5', 500],
  ['0', 0],
  ['601', 60_000],
  ['Thu, 01 Jan 2026 00:00:30 GMT', 30_000],
  ['Thu, 01 Jan 2026 00:20:00 GMT', 60_000],
  ['Wed, 31 Dec 2025 23:59:00 GMT', 0],
  ['soon', undefined],
  ['', undefined],
  [undefined, undefined],
])('%j is a wait of %s ms, and never more than a minute', (header, ms) => {
  expect(retryAfterMsIn(header, NOW)).toBe(ms);
});
