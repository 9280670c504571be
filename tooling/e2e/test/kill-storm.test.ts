/**
 * A launcher is killed repeatedly while its pool is at its limit: an observer never sees more records or instances than
 * `max-servers`, every request is fulfilled, and no resource is left. `pnpm scenario` runs the long version.
 */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { seededRandom } from '@nodepool/core/testing';
import { sleep, systemClock } from '@nodepool/zookeeper';
import { Observer } from './observer.js';
import { Site, type LauncherSetup } from './site.js';

const LONG = process.env['NODEPOOL_SCENARIO'] === 'long';
const { kills, requests } = LONG ? { kills: 20, requests: 150 } : { kills: 3, requests: 20 };
const TIMEOUT_MS = 1_800_000;
/** More than the limit of the pool, so that the pool is always full. */
const PARALLEL = 14;
/** Maximum time from the registration of a launcher's pool until the launcher is killed (ms). */
const MAX_LIFE_MS = 2500;
const FAULTS = ['failed-instances=0.1', 'create-errors=0.05', 'lost-answers=0.05'];

describe.each(LONG ? [8, 9] : [8])('a pool of %d nodes', (maxServers) => {
  let site: Site;

  beforeEach(async () => {
    site = await Site.start();
  }, TIMEOUT_MS);

  afterEach(async () => {
    await site.stop();
  }, TIMEOUT_MS);

  it(
    `stays within its limit while ${kills} launchers are killed`,
    async () => {
      const random = seededRandom(maxServers);
      const endpoint = await site.cloud(['boot-time=[0.2,1]', ...FAULTS.map((fault) => `faults.${fault}`)]);
      // Consecutive failed launches must not fail their request.
      const more = { 'launch-retries': 20 };
      const setup: LauncherSetup = { providers: [{ endpoint, maxServers, more }] };
      let launcher = await site.launcher(setup);
      const observer = new Observer(site, endpoint);
      const load = ['--requests', String(requests), '--parallel', String(PARALLEL), '--wait-deleted'];
      const requestor = await site.requestor('--labels', 'debian', ...load, '--timeout', String(TIMEOUT_MS / 1000));

      for (let kill = 0; kill < kills; kill += 1) {
        await Promise.race([requestor.result, site.nodesExist(launcher, maxServers - 1)]);
        await sleep(systemClock, random.next() * MAX_LIFE_MS);
        await launcher.kill();
        launcher = await site.launcher(setup);
      }

      const { exitCode, summary } = await requestor.result;
      expect(summary).toMatchObject({ outcomes: { fulfilled: requests }, problems: [] });
      expect(exitCode).toBe(0);
      await site.clean(launcher);
      await site.noInstances(launcher, endpoint);
      await site.nothingLeft(launcher);
      const most = await observer.stop();
      expect(most.records).toBeLessThanOrEqual(maxServers);
      expect(most.instances).toBeLessThanOrEqual(maxServers);
      // Without reaching the limit, the test would prove nothing.
      expect(most.records).toBe(maxServers);
    },
    TIMEOUT_MS,
  );
});
