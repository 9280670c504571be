/** For every rule, a driver that violates it fails with that rule's id. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from '@jest/globals';
import { ContractViolation, driverContract, type DriverFixture } from '../src/index.js';
import { acmeSubject } from './support/acme-subject.js';
import { supplierSubject } from './support/acme-supplier.js';
import { leftOpen, type Defect } from './support/defects/defect.js';
import { DEFECTS } from './support/defects/index.js';

const folder = mkdtempSync(join(tmpdir(), 'driver-kit-'));
afterAll(() => rmSync(folder, { recursive: true }));
afterEach(() => {
  for (const server of leftOpen.splice(0)) server.close();
});

function subjectWith({ changes, manifest, supplier }: Defect): DriverFixture {
  if (supplier !== undefined) return supplierSubject(supplier);
  const fixture = acmeSubject(changes);
  if (manifest === undefined) return fixture;
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
  return { ...fixture, packageFolder: folder };
}

describe('a driver that breaks a rule', () => {
  const ids = driverContract(acmeSubject()).map(({ rule }) => rule.id);

  it.each(ids)('is caught: %s', async (id) => {
    const defect = DEFECTS[id];
    if (defect === undefined) throw new Error(`no defect breaks ${id}`);
    const broken = driverContract(subjectWith(defect)).find(({ rule }) => rule.id === id);
    const error: unknown = await broken?.run().then(
      () => undefined,
      (reason: unknown) => reason,
    );
    expect(error).toBeInstanceOf(ContractViolation);
    expect(error).toMatchObject({ rule: { id }, message: expect.stringMatching(defect.says) });
  });

  it('is no other than those that are listed', () => {
    expect(Object.keys(DEFECTS).sort()).toEqual([...ids].sort());
  });
});
