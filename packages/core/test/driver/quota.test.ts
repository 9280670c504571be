/** Amounts of resources. */

import { describe, expect, it } from '@jest/globals';
import { QuotaInformation } from '@nodepool/core';

const { limit, use } = QuotaInformation;

describe('a limit', () => {
  it('of 0 allows nothing, and one of -1 or without an amount anything', () => {
    const limits = limit({ instances: 0, cores: -1, ram: Infinity });
    expect(limits.entries()).toEqual([['instances', 0]]);
    expect(limits.fits(use({ instances: 1 }))).toBe(false);
    expect(limits.fits(use({ cores: 1000, ram: 1000, volumes: 1000 }))).toBe(true);
  });

  it('fits a need that equals it, and none that is larger in one resource', () => {
    const limits = limit({ instances: 2, cores: 8 });
    expect(limits.fits(use({ instances: 2, cores: 8 }))).toBe(true);
    expect(limits.fits(use({ instances: 1, cores: 9 }))).toBe(false);
  });

  it('of two sources is the smaller one of each resource', () => {
    const both = limit({ instances: 2, cores: 8 }).min(limit({ cores: 4, ram: 0 }));
    expect(both.toResources()).toEqual({ instances: 2, cores: 4, ram: 0 });
  });

  it('without the use of others remains unlimited for resources without an amount', () => {
    const left = limit({ instances: 2 }).subtract(use({ instances: 2, cores: 4 }));
    expect(left.toResources()).toEqual({ instances: 0 });
    expect(left.fits(use({ cores: 1 }))).toBe(true);
  });
});

it('uses add up, and a use of nothing changes none', () => {
  const sum = use({ instances: 1 })
    .add(use({ instances: 1, cores: 2 }))
    .add(QuotaInformation.NOTHING);
  expect(sum.toResources()).toEqual({ instances: 2, cores: 2 });
  expect(sum.get('ram')).toBe(0);
});
