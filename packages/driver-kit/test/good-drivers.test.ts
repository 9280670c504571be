/** Correct drivers satisfy every rule on every framework. */

import { describe, it } from '@jest/globals';
import { describeDriverContract, driverContract } from '../src/index.js';
import { acmeSimpleDriver } from './support/acme-simple.js';
import { acmeFixture, fixtureOf } from './support/acme-fixture.js';
import { slotsFixture } from './support/acme-slots.js';
import { supplierFixture } from './support/acme-supplier.js';

describeDriverContract(acmeFixture(), { describe, it });
describeDriverContract(acmeFixture({}, 'acme, with conflicts', true), { describe, it });
describeDriverContract(
  fixtureOf('acme, on the simple framework', (cloud) => acmeSimpleDriver(cloud)),
  { describe, it },
);
describeDriverContract(
  fixtureOf('acme, on the simple framework, with polls', (cloud) => acmeSimpleDriver(cloud, true)),
  { describe, it },
);
describeDriverContract(supplierFixture(), { describe, it });

// The other rules are checked with drivers that have a cloud.
describe('acme, with slots', () => {
  const rules = driverContract(slotsFixture()).filter(({ rule }) => rule.appliesTo === 'backed');
  it.each(rules)('$title', ({ run }) => run());
});
