/** A node in use whose instance its cloud takes away: one path for every driver, with its simulated cloud. */

import { afterEach, describe, expect, it } from '@jest/globals';
import type { JsonObject } from '@nodepool/core';
import type { Interruption } from '@nodepool/requestor';
import type { OpenTarget } from '../src/matrix/target.js';
import { TARGETS } from '../src/matrix/targets.js';
import { LIMIT_MS, Site } from './support/site.js';

function targetOf(driver: string): OpenTarget {
  const open = TARGETS.get(driver);
  if (open === undefined) throw new Error(`there is no driver ${driver}`);
  return open;
}

let site: Site;
afterEach(() => site.stop());

/**
 * The label's keys for spot instances, and the kind of the interruption, by driver. Azure deletes evicted VMs within
 * seconds, so lists lack them.
 */
const DRIVERS: readonly (readonly [string, JsonObject, string])[] = [
  ['aws', { 'use-spot': true }, 'reclaimed'],
  ['gce', { 'provisioning-model': 'spot' }, 'reclaimed'],
  ['azure', { spot: true, 'hardware-profile': { 'vm-size': 'Standard_D4s_v5' } }, 'missing'],
  ['kubernetes', {}, 'reclaimed'],
  ['openstack', {}, 'failed'],
];

describe.each(DRIVERS)('with driver %s', (driver, label, kind) => {
  it('a node in use that is taken away is recorded, and its holder is told', async () => {
    site = await Site.start(targetOf(driver), { label });
    const { clock } = site.time;
    const lease = await site.lease();
    const [node] = lease.nodes;
    const id = node?.id ?? '';
    const told: Interruption[] = [];
    lease.onInterruption((each) => told.push(each));
    await site.time.until(() => false, 30_000);
    expect(told).toEqual([]);
    const takenAt = clock.now();
    site.target.takeAway(site.externalIdOf(id));
    await site.time.until(() => told.length > 0, LIMIT_MS);
    expect(told).toMatchObject([{ nodeId: id, kind }]);
    expect(site.store.nodes.get(id)?.node).toMatchObject({ state: 'in-use', interruption: { kind } });
    // AWS announces it; the next list shows the others.
    const limitMs = driver === 'aws' ? 30_000 : 120_000;
    expect(clock.now() - takenAt).toBeLessThan(limitMs);
    if (driver === 'aws') expect(told[0]?.endsAt).toBeGreaterThan(takenAt + 100_000);
    await site.run(lease.return());
    await site.time.until(() => [...site.store.nodes.all()].length === 0, LIMIT_MS);
    expect([...site.store.nodes.all()]).toEqual([]);
  });
});

describe.each(DRIVERS.slice(0, 3))('with driver %s', (driver, label) => {
  it('a ready node that is taken away is replaced and not handed out', async () => {
    site = await Site.start(targetOf(driver), { label, labels: { 'min-ready': 1 } });
    await site.time.until(() => site.ready().length === 1, LIMIT_MS);
    await site.time.until(() => false, 90_000);
    const [lost = ''] = site.ready();
    site.target.takeAway(site.externalIdOf(lost));
    await site.time.until(() => !site.ready().includes(lost), LIMIT_MS);
    const lease = await site.lease();
    expect(lease.nodes.map(({ id }) => id)).not.toContain(lost);
    await site.run(lease.return());
    await site.time.until(() => site.ready().length === 1, LIMIT_MS);
    expect(site.ready()).not.toContain(lost);
  });
});
