/** Tests of the choice of an upload: what is current, what was before, what is tested, and which request gets what. */

import { describe, expect, it } from '@jest/globals';
import { advanceReview, newReview, trustedReview, type ImageReview, type ImageUpload } from '@nodepool/core';
import { chooseUpload, currentUpload, pathOf, standingOf, standingsOf } from '../../src/images/image-standing.js';

function upload(build: string, time: number, review?: ImageReview, more: Partial<ImageUpload> = {}): ImageUpload {
  return {
    ...{ image: 'debian', build, provider: 'cloud', id: '0000000001', state: 'ready', state_time: time },
    ...{ external_id: build, external_name: null, format: 'raw', username: null, python_path: null, shell_type: null },
    ...(review === undefined ? {} : { review }),
    ...more,
  };
}

const at = (since: number): { since: number; by: string; reason: string } => ({ since, by: 'ada', reason: '' });
const isNew = (time: number): ImageReview => newReview(time, 'builder', '');
const promoted = (time: number): ImageReview => ({ ...trustedReview(time), promoted: time });
const canary = (time: number): ImageReview => advanceReview({ review: isNew(time), since: time }, 'trial', at(time))!;
const rejected = (time: number): ImageReview =>
  advanceReview({ review: isNew(time), since: time }, 'reject', at(time))!;

const current = (uploads: readonly ImageUpload[], isTested = false): string | undefined =>
  currentUpload(standingOf(uploads, isTested))?.build;

describe('the current upload', () => {
  it('without reviews is the newest usable one', () => {
    expect(current([upload('a', 1), upload('b', 2)])).toBe('b');
    expect(current([upload('a', 1), upload('b', 2, undefined, { listed: false })])).toBe('a');
    expect(current([upload('a', 1, undefined, { state: 'uploading' })])).toBeUndefined();
  });

  it('is the one promoted last, whenever it was uploaded', () => {
    expect(current([upload('a', 1, promoted(10)), upload('b', 2, promoted(5))])).toBe('a');
    expect(current([upload('a', 1), upload('b', 2, isNew(2))])).toBe('a');
  });

  it('is a pinned one, and never a rejected one', () => {
    const pinned = { ...promoted(1), pinned: { by: 'ada', since: 3 } };
    expect(current([upload('a', 1, pinned), upload('b', 2, promoted(2))])).toBe('a');
    expect(current([upload('a', 1, rejected(1))])).toBeUndefined();
  });

  it('is no upload of another builder that is newer than the tests', () => {
    const uploads = [upload('a', 1, promoted(1)), upload('b', 2)];
    expect([current(uploads, true), current(uploads, false)]).toEqual(['a', 'b']);
    expect(standingOf(uploads, true).candidate?.build).toBe('b');
    expect(current([upload('a', 1), upload('b', 2)], true)).toBe('b');
  });
});

describe('the candidate', () => {
  it('is the one on trial, else the newest; older ones are superseded', () => {
    const uploads = [
      upload('old', 1, isNew(1)),
      upload('now', 2, promoted(2)),
      upload('x', 3, isNew(3)),
      upload('y', 4, isNew(4)),
    ];
    expect(standingOf(uploads, true).candidate?.build).toBe('y');
    expect(standingOf([...uploads, upload('trial', 2.5, canary(2.5))], true).candidate?.build).toBe('trial');
    expect([...standingsOf(uploads, true)].map(([{ build }, standing]) => `${build} ${standing}`)).toEqual([
      'old superseded',
      'now current',
      'x superseded',
      'y uploaded',
    ]);
  });
});

describe('a request', () => {
  const uploads = [upload('a', 1, promoted(1)), upload('b', 2, canary(2))];
  const policy = { isTested: true, share: 0.25 };
  const choose = (id: string, exactly?: string) => chooseUpload(uploads, policy, { id, exactly });

  it('gets the candidate with the configured share, and the same upload again', () => {
    const builds = Array.from({ length: 2000 }, (_, index) => choose(`200-${index}`)?.upload.build);
    expect(builds.filter((build) => build === 'b').length / 2000).toBeCloseTo(0.25, 1);
    expect(builds).toEqual(builds.map((_build, index) => choose(`200-${index}`)?.upload.build));
    expect(choose('200-1')?.trial).toMatchObject({ upload: pathOf(uploads[1]!), share: 0.25 });
  });

  it('gets the current upload without a trial, with a pin, and if no request is given', () => {
    expect(chooseUpload(uploads, { isTested: true, share: 0 }, { id: '1', exactly: undefined })?.upload.build).toBe(
      'a',
    );
    expect(chooseUpload(uploads, policy, undefined)).toMatchObject({ upload: { build: 'a' }, trial: undefined });
  });

  it('of a launch test gets exactly its upload, unless that is rejected', () => {
    expect(choose('1', pathOf(uploads[1]!))?.upload.build).toBe('b');
    const bad = upload('c', 3, rejected(3));
    expect(chooseUpload([...uploads, bad], policy, { id: '1', exactly: pathOf(bad) })).toBeUndefined();
  });
});

describe('the transitions of a review', () => {
  it('refuse what contradicts the stage, and let an operator reinstate a rejected upload', () => {
    const review = rejected(1);
    expect(advanceReview({ review, since: 1 }, 'promote', at(2))).toBeUndefined();
    expect(advanceReview({ review, since: 1 }, 'tested', at(2))).toBeUndefined();
    expect(advanceReview({ review, since: 1 }, 'reinstate', at(2))).toMatchObject({ stage: 'promoted', promoted: 2 });
    expect(advanceReview({ review: undefined, since: 1 }, 'reject', at(2))?.history.map(({ stage }) => stage)).toEqual([
      'promoted',
      'rejected',
    ]);
  });

  it('limit the history, and remove a pin that would contradict the stage', () => {
    let review: ImageReview = { ...promoted(1), pinned: { by: 'ada', since: 1 } };
    for (let time = 2; time < 60; time += 2) {
      review = advanceReview({ review, since: 1 }, 'reject', at(time))!;
      expect(review.pinned).toBeUndefined();
      review = advanceReview({ review, since: 1 }, 'reinstate', at(time + 1))!;
    }
    expect(review.history).toHaveLength(20);
  });
});
