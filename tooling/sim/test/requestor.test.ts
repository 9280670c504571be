/** A simulated requestor deletes its request when it gives up, as a real one does. */

import { expect, it } from '@jest/globals';
import { WHOLE_SITE } from '../src/site.js';
import { World } from '../src/world.js';

/** Path of a request that a requestor created; the launcher's own have priority 900. */
const REQUEST = /^\/nodepool\/requests\/[123]00-/;

it('a requestor withdraws a request whose creation was not answered', async () => {
  const world = new World({ seed: 1 });
  const { server, clock } = world;
  world.startLauncher('launcher-1', WHOLE_SITE);
  await clock.advance(1000);
  let created = false;
  const unsubscribe = server.onCommit((changes) => {
    if (!changes.some(({ path }) => REQUEST.test(path))) return;
    unsubscribe();
    created = true;
    server.stop();
    clock.schedule(1000, () => server.start());
  });

  world.startRequestor();
  await clock.advance(300_000);
  expect(created).toBe(true);
  expect(world.requestors.map(({ done }) => done)).toEqual([true]);
  expect([...server.dump().keys()].filter((path) => REQUEST.test(path))).toEqual([]);
  world.end();
});
