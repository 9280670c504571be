/** For every rule, a driver that violates it fails with that rule's id. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from '@jest/globals';
import { ContractViolation, driverContract, type DriverFixture } from '../src/index.js';
import { acmeFixture } from './support/acme-fixture.js';
import { slotsFixture } from './support/acme-slots.js';
import { supplierFixture } from './support/acme-supplier.js';
import { leftOpen, type Defect } from './support/defects/defect.js';
import { DEFECTS } from './support/defects/index.js';

const folder = mkdtempSync(join(tmpdir(), 'driver-kit-'));
afterAll(() => rmSync(folder, { recursive: true }));
afterEach(() => {
  for (const server of leftOpen.splice(0)) server.close();
});

function fixtureWith({ changes, manifest, supplier, slots }: Defect): DriverFixture {
  if (slots !== undefined) return slotsFixture(slots);
  if (supplier !== undefined) return supplierFixture(supplier);
  const fixture = acmeFixture(changes);
  if (manifest === undefined) return fixture;
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
  return { ...fixture, packageFolder: folder };
}

describe('a driver that violates a rule', () => {
  const ids = driverContract(acmeFixture()).map(({ rule }) => rule.id);

  it.each(ids)('is detected: %s', async (id) => {
    const defect = DEFECTS[id];
    if (defect === undefined) throw new Error(`no defect breaks ${id}`);
    const broken = driverContract(fixtureWith(defect)).find(({ rule }) => rule.id === id);
    const error: unknown = await broken?.run().then(
      () => undefined,
      (reason: unknown) => reason,
    );
    expect(error).toBeInstanceOf(ContractViolation);
    expect(error).toMatchObject({ rule: { id }, message: expect.stringMatching(defect.says) });
  });

  it('exists for every rule', () => {
    expect(Object.keys(DEFECTS).sort()).toEqual([...ids].sort());
  });
});
