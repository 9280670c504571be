/**
 * A launcher or a builder is killed right after a transaction that moves a new image from stage to stage, and a fresh
 * one continues: the image is promoted, and all rules of the checker hold.
 */

import { afterEach, describe, expect, it } from '@jest/globals';
import type { JsonObject } from '@nodepool/core';
import { openStore, type Store } from '@nodepool/store';
import { announcing } from '../src/announcing.js';
import { MemoryDisk } from '../src/images/built-images.js';
import { partsOfUpload } from '../src/images/upload-path.js';
import { LAUNCH_TEST } from '../src/rules/images.js';
import { reviewOf } from '../src/rules/values.js';
import { DISK_IMAGE, SITE_WITH_IMAGES, type Site } from '../src/site.js';
import { World } from '../src/world.js';

const SITE: Site = {
  ...SITE_WITH_IMAGES,
  providers: SITE_WITH_IMAGES.providers.slice(0, 1),
  minReady: {},
  imageTests: { 'launch-test': true, canary: { share: '50%', nodes: 3 } },
};
/** Interval between requests, and time in which an image must be promoted (ms). */
const REQUEST_MS = 4000;
const LIMIT_MS = 1_800_000;
/** Time until a killed process is started again (ms). */
const RESTART_MS = 500;

/** With `NODEPOOL_SIM_SEEDS`, as in the long tests, every transaction is followed by a death; else one of several. */
const STRIDE = process.env['NODEPOOL_SIM_SEEDS'] === undefined ? 9 : 1;

const TIMEOUT_MS = 7_200_000;

const BUILD = /^\/nodepool\/images\/[^/]+\/builds\/[0-9a-f]{32}$/;

let world: World;
afterEach(() => world.end());

function promotions(): number {
  const uploads = [...world.checker.observed.uploads.values()];
  return uploads.filter((upload) => reviewOf(upload)?.['stage'] === 'promoted').length;
}

/** Calls `counted` after each transaction that changes an upload, a launch test or a node of a trial. */
function onStages(counted: () => void): void {
  const { observed } = world.checker;
  const isOfTest = (record: JsonObject | undefined): boolean =>
    record?.['requestor'] === LAUNCH_TEST || record?.['trial'] !== undefined;
  world.server.onCommit((changes) => {
    const isStage = changes.some(({ path }) => {
      const id = path.split('/')[3] ?? '';
      if (path.startsWith('/nodepool/nodes/')) return isOfTest(observed.nodes.get(id)?.data);
      if (path.startsWith('/nodepool/requests/')) return isOfTest(observed.requests.get(id)?.data);
      return partsOfUpload(path) !== undefined;
    });
    if (isStage) counted();
  });
}

/** Calls `counted` after each transaction that changes the record of a build or of an upload. */
function onBuilds(counted: () => void): void {
  world.server.onCommit((changes) => {
    if (changes.some(({ path }) => BUILD.test(path) || partsOfUpload(path) !== undefined)) counted();
  });
}

/**
 * Runs until a second image is promoted. `arm` is called once the first one is. Resolves with a description of what
 * went wrong.
 */
async function promoteSecond(arm: () => void): Promise<string | undefined> {
  world = new World({ seed: 5 });
  world.images.onlyGood = true;
  world.startLauncher('launcher-1', SITE);
  world.startBuilder({ name: 'builder-1', disk: new MemoryDisk() });
  const store = openStore(announcing(world), { clock: world.clock, random: world.random(), identifier: 'operator' });
  store.start();
  await requestBuild(store);
  if (!(await world.until(() => promotions() === 1, LIMIT_MS))) return problem('the first image is not promoted');
  arm();
  await requestBuild(store);
  const end = world.clock.monotonic() + LIMIT_MS;
  while (promotions() < 2 && world.clock.monotonic() < end && world.checker.violation === undefined) {
    world.startRequestor();
    await world.until(() => promotions() === 2, REQUEST_MS);
  }
  store.close();
  return promotions() === 2 ? problem(undefined) : problem('the second image is not promoted');
}

function problem(otherwise: string | undefined): string | undefined {
  const { violation } = world.checker;
  return violation === undefined ? otherwise : `${violation.rule}: ${violation.what}`;
}

async function requestBuild(store: Store): Promise<void> {
  let isDone = false;
  store
    .ready()
    .then(() => store.images.requestBuild(DISK_IMAGE.name))
    .then(() => (isDone = true))
    .catch((error: unknown) => world.checker.report('X', String(error)));
  await world.until(() => isDone, LIMIT_MS);
}

/** Runs with a death after each counted transaction, until there is none left. Resolves with the number of deaths. */
async function killAtEach(
  count: (counted: () => void) => void,
  kill: () => void,
): Promise<{ readonly deaths: number; readonly problems: readonly string[] }> {
  const problems: string[] = [];
  let deaths = 0;
  for (let last = 1; ; last += STRIDE) {
    let left = last;
    const found = await promoteSecond(() =>
      count(() => {
        left -= 1;
        if (left === 0) kill();
      }),
    );
    world.end();
    if (found !== undefined) problems.push(`death ${last}: ${found}`);
    if (left > 0) return { deaths, problems };
    deaths += 1;
  }
}

describe('an image is promoted, and no rule is broken, if', () => {
  it(
    'the launcher is killed after a transaction of its launch test, its trial and its promotion',
    async () => {
      const { deaths, problems } = await killAtEach(onStages, () => {
        const [victim] = world.launchers.filter(({ alive }) => alive);
        const name = `launcher-${world.launchers.length + 1}`;
        victim?.kill();
        world.clock.schedule(RESTART_MS, () => world.startLauncher(name, SITE));
      });
      expect(problems).toEqual([]);
      expect(deaths).toBeGreaterThan(5);
    },
    TIMEOUT_MS,
  );

  it(
    'the builder is killed after a transaction of its build, its boot test and its upload',
    async () => {
      const { deaths, problems } = await killAtEach(onBuilds, () => {
        for (const builder of world.builders) if (!builder.process.dead) builder.kill();
      });
      expect(problems).toEqual([]);
      expect(deaths).toBeGreaterThan(1);
    },
    TIMEOUT_MS,
  );
});
