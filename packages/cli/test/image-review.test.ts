/** Tests of an operator's decisions about uploads: `nodepool image promote|reject|rollback|pin|unpin|revoke`. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { newReview, type ImageReview, type ImageUpload } from '@nodepool/core';
import { World } from './world.js';

let world: World;
beforeEach(async () => {
  world = new World();
  await world.start();
});
afterEach(() => world.stop());

const uploads = (): ImageUpload[] => [...world.store.images.uploads({ image: 'debian' })];
const reviewOf = (build: string): ImageReview | null | undefined =>
  uploads().find((upload) => upload.build === build)?.review;
const chosen = (): string | undefined => world.store.images.choose('debian', 'cloud')?.upload.build;

/** Creates an upload, with a review if it is to be tested. */
async function add(build: string, time: number, isTested = false, provider = 'cloud'): Promise<void> {
  const known = world.store.images.build({ image: 'debian', id: build });
  const record = known ?? (await world.build('debian', build, { state_time: time }));
  const review = isTested ? { review: newReview(time, 'builder', 'uploaded') } : {};
  await world.upload(record, provider, { state_time: time, ...review });
}

async function image(...args: readonly string[]): Promise<{ code: number | undefined; said: string }> {
  const { code, out } = await world.run('image', ...args);
  await world.finish(world.store.images.syncCache());
  return { code, said: out.noted };
}

describe('the commands for images', () => {
  it('promote and reject the candidate, and record who did it, when and why', async () => {
    await add('old', 10);
    await add('new', 20, true);
    expect(chosen()).toBe('old');
    expect(await image('promote', 'debian', '--reason', 'tested by hand')).toEqual({
      code: 0,
      said: 'provider cloud: build new of image debian serves requests from now on',
    });
    expect(chosen()).toBe('new');
    expect(reviewOf('new')).toMatchObject({
      stage: 'promoted',
      by: expect.stringMatching(/^.+@.+$/),
      reason: 'tested by hand',
      since: world.clock.now() / 1000,
      history: [{ stage: 'uploaded' }, { stage: 'promoted' }],
    });
    await add('next', 30, true);
    await image('reject', 'debian');
    expect(reviewOf('next')).toMatchObject({ stage: 'rejected', reason: 'nodepool image reject' });
    expect((await image('reject', 'debian')).said).toMatch(/no upload is being tested/);
  });

  it('return to the previous upload and put a rejected one in service again', async () => {
    await add('old', 10);
    await add('new', 20);
    expect((await image('rollback', 'debian')).said).toBe(
      'provider cloud: build new of image debian is rejected; build old serves requests again',
    );
    expect(chosen()).toBe('old');
    expect(await image('rollback', 'debian')).toMatchObject({ code: 1 });
    await image('promote', 'debian', '--build', 'new');
    expect(chosen()).toBe('new');
  });

  it('put an earlier upload in service again, and keep the present one', async () => {
    await add('old', 10);
    await add('new', 20);
    expect(await image('promote', 'debian', '--build', 'new')).toMatchObject({ code: 1 });
    expect(await image('promote', 'debian', '--build', 'old')).toMatchObject({ code: 0 });
    expect(chosen()).toBe('old');
    await image('rollback', 'debian');
    expect(chosen()).toBe('new');
  });

  it('pin an upload, which newer ones do not replace, and unpin it', async () => {
    await add('old', 10);
    await image('pin', 'debian');
    await add('new', 20);
    expect(chosen()).toBe('old');
    expect((await image('rollback', 'debian')).said).toMatch(/is pinned; unpin it first/);
    await image('unpin', 'debian');
    expect(chosen()).toBe('new');
    expect(reviewOf('old')?.history.map(({ stage }) => stage)).toEqual(['promoted', 'pinned', 'unpinned']);
    await add('untested', 30, true);
    expect((await image('pin', 'debian', '--build', 'untested')).said).toMatch(/is not promoted; promote it first/);
  });

  it('unpin an image of which several uploads were pinned', async () => {
    await add('old', 10);
    await add('middle', 20);
    await add('new', 30);
    await image('pin', 'debian', '--build', 'old');
    await world.clock.advance(1000);
    await image('pin', 'debian', '--build', 'middle');
    expect(chosen()).toBe('middle');
    expect(await image('unpin', 'debian')).toMatchObject({ code: 0 });
    expect(chosen()).toBe('new');
  });

  it('withdraw the only upload that requests can use only with --force, and say what waits', async () => {
    await add('old', 10);
    for (const action of ['reject', 'revoke']) {
      const { code, said } = await image(action, 'debian', '--build', 'old');
      expect({ code, said }).toEqual({
        code: 1,
        said: expect.stringMatching(/requests for its labels wait until another build is uploaded; .* --force/),
      });
    }
    expect(chosen()).toBe('old');
    await add('new', 20, true);
    expect((await image('revoke', 'debian', '--build', 'old')).said).toMatch(/until build new has passed its tests/);
    expect(await image('revoke', 'debian', '--build', 'old', '--force')).toMatchObject({
      code: 0,
      said: expect.stringMatching(/is revoked[^]*wait until build new has passed its tests/),
    });
    expect((await image('reject', 'debian')).said).toMatch(/wait until another build is uploaded/);
    expect(reviewOf('new')).toMatchObject({ stage: 'uploaded' });
    expect(await image('reject', 'debian', '--force')).toMatchObject({ code: 0 });
  });

  it('revoke a named build at every provider, and only there', async () => {
    await add('old', 10);
    await add('old', 10, false, 'other');
    await add('new', 20);
    expect(await image('revoke', 'debian')).toMatchObject({ code: 1, said: expect.stringContaining('--build') });
    expect((await image('revoke', 'debian', '--build', 'new')).said).toContain(
      'provider other: there is no ready upload',
    );
    expect(chosen()).toBe('old');
    expect(uploads().filter(({ review }) => review?.stage === 'revoked')).toHaveLength(1);
  });

  it('refuse unknown images and providers', async () => {
    await add('old', 10);
    expect(await image('promote', 'debain')).toMatchObject({ code: 1 });
    expect(await image('promote', 'debian', '--provider', 'clod')).toMatchObject({ code: 1 });
    expect((await image('promote', 'debian')).said).toMatch(/no upload waits for its promotion/);
  });

  it('show their results in the detailed list', async () => {
    await add('old', 10);
    await add('new', 20);
    expect((await world.run('image-list', '--detail')).out.printed).toMatch(/Stage +\|/);
    await image('revoke', 'debian', '--build', 'new', '--reason', 'leaked key');
    const { printed } = (await world.run('image-list', '--detail')).out;
    expect(printed).toMatch(/new .* revoked .*leaked key/);
    expect(printed).toMatch(/old .* current /);
    expect((await world.run('image-list')).out.printed).not.toContain('Stage');
  });
});
