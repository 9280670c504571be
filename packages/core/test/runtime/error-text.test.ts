/** Tests of the texts of thrown values. */

import { expect, it } from '@jest/globals';
import { createConnection, type LookupFunction } from 'node:net';
import { once } from 'node:events';
import { reasonOf, shortened } from '../../src/index.js';

it('names the reason of an error without message', async () => {
  const lookup: LookupFunction = (_host, _options, done) =>
    done(null, [
      { address: '127.0.0.1', family: 4 },
      { address: '127.0.0.2', family: 4 },
    ]);
  const socket = createConnection({ host: 'two.example.org', port: 1, lookup, autoSelectFamily: true });
  const [error] = (await once(socket, 'error').catch((thrown: unknown) => [thrown])) as [Error];
  expect(error.message).toBe('');
  expect(reasonOf(error)).toBe('connect ECONNREFUSED 127.0.0.1:1; connect ECONNREFUSED 127.0.0.2:1');
  expect(reasonOf(new Error(''))).toBe('Error');
  expect(reasonOf(Object.assign(new Error(''), { code: 'EPIPE' }))).toBe('EPIPE');
});

it('keeps the beginning and the end of a long text, because the end holds the cause', () => {
  expect(shortened('short', 5)).toBe('short');
  const long = shortened(`the listing failed: ${'x'.repeat(500)}: ECONNREFUSED`, 60);
  expect(long).toMatch(/^the listing failed: x+…x+: ECONNREFUSED$/);
  expect(long).toHaveLength(60);
});
