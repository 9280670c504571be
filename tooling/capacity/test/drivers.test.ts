/** Short form of the matrix: with every driver, a cloud in trouble costs requests seconds beside a healthy one. */

import { describe, expect, it } from '@jest/globals';
import { runCell } from '../src/matrix/cell.js';
import { resultOf, SPECIAL_TROUBLES } from '../src/matrix/measure.js';
import { BOOT_MS } from '../src/matrix/target.js';
import { TARGETS } from '../src/matrix/targets.js';
import { troubleNamed } from '../src/matrix/troubles.js';
import { BOUND } from '../src/report.js';
import { seededRandom, VirtualClock } from '@nodepool/core/testing';

const PERIODS = { calmMs: 60_000, disturbedMs: 240_000, afterMs: 30_000 };
/** Time that an undisturbed launch takes besides the boot, with any driver (ms). */
const CALLS_MS = 4000;

describe.each([...TARGETS])('a cloud of driver %s that is preferred', (driver, open) => {
  it.each([
    'refusing connections',
    'answering 503, Retry-After: 600',
    ...(driver === 'openstack' ? ['silent'] : []),
    ...(driver === 'kubernetes'
      ? ['pods whose secrets are not cached for 20 s', 'pods that can never pull their image']
      : []),
  ])('and is %s delays no request', async (title) => {
    const waits = await runCell({ ...PERIODS, seed: 1, open, trouble: troubleNamed(title), isPreferred: true });
    const { failed, p95Ms, requests } = resultOf(waits, PERIODS);
    expect(failed).toBe(0);
    expect(requests).toBeGreaterThan(60);
    expect(p95Ms).toBeLessThanOrEqual(BOUND * (BOOT_MS + CALLS_MS));
  });

  it('has the troubles of the table', async () => {
    const target = await open({ clock: new VirtualClock(), random: seededRandom(1) });
    await target.close();
    expect([...target.special.keys()]).toEqual(SPECIAL_TROUBLES[driver]);
  });
});
