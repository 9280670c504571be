/** A restored state of ZooKeeper does not contain locks that would never be released. */

import { expect, it } from '@jest/globals';
import { WHOLE_SITE } from '../src/site.js';
import { World } from '../src/world.js';

it('sessions of launchers and requestors end when a backup is restored', async () => {
  const world = new World({ seed: 1 });
  const { server, clock } = world;
  world.startLauncher('launcher-1', WHOLE_SITE);
  await clock.advance(1000);
  world.startRequestor();
  await clock.advance(1000);
  const backup = server.snapshot();
  const takenAt = clock.monotonic();
  await clock.advance(1000);

  server.restore(backup);
  expect(server.liveSessions).toHaveLength(2);
  world.restored(takenAt);
  expect(server.liveSessions).toEqual([]);
  world.end();
});
