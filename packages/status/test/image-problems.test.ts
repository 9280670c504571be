/** Tests of the problems of images that the status page names. */

import { describe, expect, it } from '@jest/globals';
import type { ImageStatus } from '../src/client/model.js';
import type { ProblemSources } from '../src/documents/problems/sources.js';
import { findProblems } from '../src/documents/problems/index.js';
import { build, failure, group, HEALTHY, image, NOW, titles, upload } from './problem-fixtures.js';

describe('images', () => {
  it('a requested build is a problem if no registered builder builds the image', () => {
    const requested = image({ requested: NOW - 60, uploads: [{ ...upload, state: 'ready', since: NOW }] });
    const found = (builders: ProblemSources['builders'], more: Partial<ImageStatus> = {}): readonly string[] =>
      titles({ images: [{ ...requested, ...more }], builders });
    const missing = ['warning: No registered builder builds the image debian, whose build is requested'];
    expect(found([{ images: ['fedora'] }, { images: [] }])).toEqual(missing);
    expect(found([{ images: ['fedora'] }, { images: ['debian'] }])).toEqual([]);
    // Other implementations do not name their images.
    expect(found([{ images: ['fedora'] }, {}])).toEqual([]);
    expect(found([{ images: [] }], { requested: null })).toEqual([]);
    expect(found([{ images: [] }], { paused: true })).toEqual([]);
  });

  it('that no provider has are critical while requests wait for their labels', () => {
    expect(titles({ images: [image({})] })).toEqual(['warning: Image debian is missing']);
    const reasons = [group({ phase: 'image', count: 15 })];
    expect(findProblems({ ...HEALTHY, images: [image({ lastFailure: failure })], reasons })).toMatchObject([
      { severity: 'critical', effect: '15 requests wait for it', details: ['exit code 1'] },
    ]);
    expect(titles({ images: [image({ labels: [] })] })).toEqual([]);
  });

  it('that are missing have a time, also while no request waits', () => {
    const since = (more: Partial<ImageStatus>): (number | null)[] =>
      findProblems({ ...HEALTHY, images: [image(more)] }).map((problem) => problem.since);
    expect(since({ lastFailure: failure })).toEqual([NOW - 100]);
    expect(since({ requested: NOW - 7 })).toEqual([NOW - 7]);
    expect(since({ builds: [{ ...build, state: 'building', since: NOW - 300 }], lastFailure: failure })).toEqual([
      NOW - 300,
    ]);
    const gone = { ...upload, state: 'ready', since: NOW - 90_000, failure: 'the cloud does not list the image' };
    const builds = [{ ...build, state: 'ready', since: NOW - 90_000 }];
    const again = { ...upload, id: '2', state: 'uploading', since: NOW - 20 };
    const old = { ...failure, time: NOW - 100_000 };
    expect(since({ builds, uploads: [again, gone], lastFailure: old })).toEqual([NOW - 20]);
    expect(since({})).toEqual([null]);
  });

  it('whose last build failed are reported until a build succeeds', () => {
    const uploads = [{ ...upload, state: 'ready', since: NOW - 300_000 }];
    const old = { ...build, state: 'ready', since: NOW - 3 * 86_400 };
    expect(
      findProblems({ ...HEALTHY, images: [image({ uploads, lastFailure: failure, builds: [old] })] }),
    ).toMatchObject([
      {
        title: 'The last build of image debian failed',
        effect: 'nodes use a build that is 3 days old',
        remedy: 'Read /var/log/b.log on nb01. `nodepool image-build debian` starts a build.',
      },
    ]);
    const young = { ...build, state: 'ready', since: NOW - 50 };
    expect(titles({ images: [image({ uploads, lastFailure: failure, builds: [young] })] })).toEqual([]);
  });

  it('whose upload failed are reported until a later one succeeds', () => {
    const failed = { ...upload, state: 'failed', since: NOW - 100 };
    const ready = (since: number): ImageStatus =>
      image({ uploads: [failed, { ...upload, id: '2', state: 'ready', since }] });
    expect(titles({ images: [ready(NOW - 500)] })).toEqual(['warning: The upload of image debian to cloud failed']);
    expect(titles({ images: [ready(NOW - 50)] })).toEqual([]);
  });
});

describe('images with tests', () => {
  const reviewed = (standing: string, since: number, more: object = {}): ImageStatus['uploads'][number] => ({
    ...{ ...upload, state: 'ready', since, ...more },
    review: { standing, since, by: 'ada', reason: 'no sshd', pinned: null, trial: null },
  });
  const current = reviewed('current', NOW - 500_000, { id: '2', build: 'a' });

  it('are reported while the newest upload is rejected', () => {
    const uploads = [reviewed('rejected', NOW - 100), current];
    expect(findProblems({ ...HEALTHY, images: [image({ uploads })] })).toMatchObject([
      {
        kind: 'image-rejected',
        severity: 'warning',
        title: 'The new image debian is rejected at cloud',
        details: ['build b: no sshd'],
        effect: 'nodes of this provider use an older build',
      },
    ]);
    const newer = reviewed('current', NOW - 50, { id: '3', build: 'c' });
    expect(titles({ images: [image({ uploads: [newer, ...uploads.slice(0, 1)] })] })).toEqual([]);
  });

  it('are reported as missing if every upload is rejected', () => {
    const images = [image({ uploads: [reviewed('rejected', NOW - 100)] })];
    expect(titles({ images })).toContain('warning: Image debian is missing');
  });

  it('say that requests wait if there is no older upload, and for what', () => {
    const effects = (...uploads: ImageStatus['uploads']): (string | null | undefined)[] =>
      findProblems({ ...HEALTHY, images: [image({ uploads })] })
        .filter(({ kind }) => kind === 'image-rejected' || kind === 'image-waits')
        .map(({ effect }) => effect);
    const waits = 'there is no older build: requests for its labels get no node of this provider until';
    const elsewhere = { ...current, provider: 'other' };
    expect(effects(reviewed('rejected', NOW - 100), elsewhere)).toEqual([`${waits} another build is uploaded`]);
    expect(effects(reviewed('canary', NOW - 90_000, { id: '2', build: 'c' }))).toEqual([
      `${waits} build c has passed its tests`,
    ]);
  });

  it('are reported once a test has lasted for a day', () => {
    const waiting = (seconds: number): string[] =>
      titles({ images: [image({ uploads: [reviewed('canary', NOW - seconds), current] })] });
    expect(waiting(80_000)).toEqual([]);
    expect(waiting(90_000)).toEqual(['warning: The new image debian has been in the stage canary at cloud for a day']);
  });
});
