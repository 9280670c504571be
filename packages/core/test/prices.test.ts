/** Tests of prices and of the cost of a node. */

import { expect, it } from '@jest/globals';
import { hourlyPrice, nodeCost, pricesIn } from '../src/index.js';

const PRICES = pricesIn({
  prices: { currency: 'EUR', types: { 'm5.large': { 'on-demand': 0.096, spot: 0.03 }, 'm5.xlarge': 0.192 } },
});

it('a section without prices has none', () => {
  expect(pricesIn({})).toBeUndefined();
  expect(pricesIn({ prices: null })).toBeUndefined();
});

it('the price of a machine depends on its type and market', () => {
  expect(hourlyPrice({ type: 'm5.large' }, PRICES)).toBe(0.096);
  expect(hourlyPrice({ type: 'm5.large', market: 'spot' }, PRICES)).toBe(0.03);
  expect(hourlyPrice({ type: 'm5.xlarge', market: 'spot' }, PRICES)).toBe(0.192);
  expect(hourlyPrice({ type: 'm5.2xlarge' }, PRICES)).toBeUndefined();
  expect(hourlyPrice(null, PRICES)).toBeUndefined();
});

it('a node costs its price from its creation on', () => {
  const machine = { type: 'm5.large', market: 'spot' } as const;
  expect(nodeCost({ machine, created_time: 1000 }, PRICES, 1000 + 7200)).toEqual({
    currency: 'EUR',
    perHour: 0.03,
    total: 0.06,
  });
  expect(nodeCost({ machine, created_time: 2000 }, PRICES, 1000)?.total).toBe(0);
  expect(nodeCost({ created_time: 1000 }, PRICES, 2000)).toBeUndefined();
  expect(nodeCost({ machine, created_time: 1000 }, undefined, 2000)).toBeUndefined();
});
