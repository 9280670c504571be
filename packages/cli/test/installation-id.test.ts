/** The command that shows and restores the id of the installation. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { World } from './world.js';

let world: World;

beforeEach(async () => {
  world = new World();
  await world.start();
});

afterEach(() => world.stop());

describe('nodepool installation-id', () => {
  it('prints the id that the launchers use', async () => {
    const { code, out } = await world.run('installation-id');
    expect([code, out.printed]).toEqual([0, world.store.installation.id]);
  });

  it('sets the id, which running launchers then use', async () => {
    const before = world.store.installation.id;
    world.answer = before;
    const { code, out } = await world.run('installation-id', '--set', 'production-1');
    expect([code, out.printed]).toEqual([0, 'production-1']);
    expect(world.questions).toEqual([expect.stringContaining('deletions are suspended until')]);
    expect(out.noted).toContain(`the id was ${before}`);
    await world.until(() => world.store.installation.id === 'production-1');
  });

  it('replaces an existing id only if the user agrees', async () => {
    const before = world.store.installation.id;
    const unasked = await world.run('installation-id', '--set', 'production-1');
    expect([unasked.code, unasked.out.noted]).toEqual([1, expect.stringContaining('there is no terminal to confirm')]);
    world.answer = 'yes';
    const refused = await world.run('installation-id', '--set', 'production-1');
    expect([refused.code, refused.out.noted]).toEqual([
      1,
      expect.stringContaining(`the id is still ${before}: it was not confirmed`),
    ]);
    const { out } = await world.run('installation-id');
    expect(out.printed).toBe(before);
    const forced = await world.run('installation-id', '--set', 'production-1', '--force');
    expect([forced.code, forced.out.printed]).toEqual([0, 'production-1']);
  });

  it('rejects an invalid id', async () => {
    const before = world.store.installation.id;
    const { code, out } = await world.run('installation-id', '--set', 'No such id');
    expect(code).toBe(2);
    expect(out.noted).toContain('--set: "No such id" cannot be the id of an installation: expected 1 to 40 of a-z');
    expect(world.questions).toEqual([]);
    expect(out.noted).not.toContain('-d for details');
    expect(world.store.installation.id).toBe(before);
  });

  it('rejects --force without --set', async () => {
    const { code, out } = await world.run('installation-id', '--force');
    expect([code, out.noted]).toEqual([2, 'nodepool: --force has no effect without --set']);
  });
});
