/**
 * Rules of images with tests. They follow from `docs/images.md` and use no code of launchers and builders.
 *
 * Builders and launchers decide from caches, so a rule ignores changes that a program may not have seen yet.
 */

import type { JsonObject } from '@nodepool/core';
import { partsOfUpload } from '../images/upload-path.js';
import type { UploadChange } from '../observed.js';
import type { CheckerView, Rule } from './rule.js';
import { nodesOf, reviewOf, textOf } from './values.js';

/** Time (ms) in which a program without a fault may not have seen a change. */
const PROPAGATION_MS = 3000;
/** The same after a fault of the program: it may be cut off or stopped for most of that time. */
const DISTURBED_MS = 70_000;

/** The requestor of launch tests. */
export const LAUNCH_TEST = 'NodePool:launch-test';

type Records = ReadonlyMap<string, JsonObject>;

/** Images 1: a request gets an upload only after a launch test that it has passed, or by hand. */
export function testedImagesOnly(view: CheckerView): Rule {
  const { observed } = view;
  /** Paths of uploads from which a launch test got a ready node. */
  const tested = new Set<string>();
  const byHand = new Set<string>();
  return {
    number: 'I1',
    committed({ uploads, requests }) {
      for (const { path, after, byHand: isByHand } of uploads) {
        const stage = reviewOf(after)?.['stage'];
        if (isByHand && stage === 'promoted') byHand.add(path);
        const isTrusted = stage === 'launch-tested' || stage === 'canary' || stage === 'promoted';
        if (!isTrusted || isByHand || byHand.has(path)) continue;
        if (!tested.has(path)) return `upload ${path} is ${stage} without a launch test`;
        if (view.hasNoLogin(partsOfUpload(path)?.build ?? ''))
          return `upload ${path} is ${stage}, but its nodes accept no login`;
      }
      for (const { id, before, after } of requests) {
        if (after?.data['state'] !== 'fulfilled' || before?.data['state'] === 'fulfilled') continue;
        for (const node of nodesOf(after.data)) {
          const image = textOf(observed.nodes.get(node)?.data['image_id']);
          // Cloud images have no tests.
          if (partsOfUpload(image) === undefined) continue;
          if (after.data['requestor'] === LAUNCH_TEST) tested.add(image);
          else if (!tested.has(image) && !byHand.has(image))
            return `request ${id} gets node ${node} of upload ${image}, which has passed no launch test`;
        }
      }
      return undefined;
    },
  };
}

/** Images 2: no node is launched from a rejected or revoked upload, and no request gets one. */
export function rejectedImagesServeNobody(view: CheckerView): Rule {
  const { observed } = view;
  const rejectedAt = new Map<string, number>();
  const isKnownRejected = (path: string, launcher: string): boolean => {
    const since = rejectedAt.get(path);
    if (since === undefined || view.now() - since < PROPAGATION_MS) return false;
    return view.now() - view.disturbedAt(launcher) > DISTURBED_MS;
  };
  return {
    number: 'I2',
    committed({ uploads, requests }) {
      for (const { path, after } of uploads) {
        if (!isBarred(after)) rejectedAt.delete(path);
        else if (!rejectedAt.has(path)) rejectedAt.set(path, view.now());
      }
      for (const { id, before, after } of requests) {
        if (after?.data['state'] !== 'fulfilled' || before?.data['state'] === 'fulfilled') continue;
        for (const node of nodesOf(after.data)) {
          const { image_id: image, launcher } = observed.nodes.get(node)?.data ?? {};
          if (isKnownRejected(textOf(image), textOf(launcher)))
            return `request ${id} gets node ${node} of upload ${textOf(image)}, which is rejected`;
        }
      }
      return undefined;
    },
    creating({ image, name }, launcher) {
      for (const [path, { external_id: id }] of observed.uploads) {
        if (id === image && isKnownRejected(path, launcher))
          return `${name} is launched from ${path}, which is rejected`;
      }
      return undefined;
    },
  };
}

/** Images 3: an upload that serves requests exists at all times once there was one, unless an operator ended that. */
export function currentImageStays({ observed }: CheckerView): Rule {
  return {
    number: 'I3',
    committed({ uploads }) {
      for (const change of uploads) {
        const { path, byHand } = change;
        if (byHand) continue;
        const [was] = servingBefore(observed.uploads, change);
        if (was !== undefined && serving(observed.uploads, path).length === 0)
          return `upload ${was} served requests, and none does after the change of ${path}`;
      }
      return undefined;
    },
    deletingImage(image) {
      for (const [path, { external_id: id }] of observed.uploads) {
        if (id === image && serving(observed.uploads, path)[0] === path)
          return `image ${image} of upload ${path} is deleted, although it serves requests`;
      }
      return undefined;
    },
  };
}

/** Images 4: current, previous and pinned uploads are not deleted by age. */
export function usedImagesStay(view: CheckerView): Rule {
  const { observed } = view;
  /** Times since when uploads are current, previous or pinned. */
  const since = new Map<string, number>();
  return {
    number: 'I4',
    committed({ uploads }) {
      for (const { path, before, after, byHand } of uploads) {
        if (before?.['state'] !== 'ready' || after?.['state'] === 'ready' || byHand) continue;
        // The second newest promotion may have been the third one when the builder decided.
        if (view.now() - (since.get(path) ?? Infinity) > DISTURBED_MS)
          return `upload ${path} is deleted, although it is current, previous or pinned`;
      }
      for (const { path } of uploads) noteUsed(observed.uploads, path, since, view.now());
      return undefined;
    },
  };
}

function noteUsed(records: Records, path: string, since: Map<string, number>, now: number): void {
  const ofPlace = samePlace(records, path);
  const pinned = ofPlace.filter((each) => reviewOf(records.get(each))?.['pinned'] !== undefined);
  const used = new Set([...promotedOf(records, ofPlace).slice(0, 2), ...pinned]);
  for (const each of ofPlace) {
    if (!used.has(each)) since.delete(each);
    else if (!since.has(each)) since.set(each, now);
  }
}

/** Returns the uploads that serve requests, the preferred one first: a pinned one, else the newest promotion. */
function serving(records: Records, path: string): readonly string[] {
  const usable = samePlace(records, path).filter((each) => isUsable(records.get(each)));
  const pinned = usable.filter((each) => reviewOf(records.get(each))?.['pinned'] !== undefined);
  return [...pinned, ...promotedOf(records, usable)];
}

function servingBefore(records: Records, { path, before }: UploadChange): readonly string[] {
  const earlier = new Map(records);
  if (before === undefined) earlier.delete(path);
  else earlier.set(path, before);
  return serving(earlier, path);
}

/** Returns the paths of promoted uploads, the newest promotion first. */
function promotedOf(records: Records, paths: readonly string[]): readonly string[] {
  const at = (path: string): number => Number(reviewOf(records.get(path))?.['promoted']);
  const promoted = paths.filter(
    (path) => records.get(path)?.['state'] === 'ready' && reviewOf(records.get(path))?.['stage'] === 'promoted',
  );
  return promoted.sort((a, b) => at(b) - at(a));
}

/** Returns the paths of the uploads of the same image to the same provider. */
function samePlace(records: Records, path: string): readonly string[] {
  const place = partsOfUpload(path);
  return [...records.keys()].filter((each) => {
    const parts = partsOfUpload(each);
    return parts?.image === place?.image && parts?.provider === place?.provider;
  });
}

function isUsable(upload: JsonObject | undefined): boolean {
  return upload?.['state'] === 'ready' && upload['listed'] !== false && !isBarred(upload);
}

function isBarred(upload: JsonObject | undefined): boolean {
  const stage = reviewOf(upload)?.['stage'];
  return stage === 'rejected' || stage === 'revoked';
}

/** Yields uploads whose tests do not continue: the newest one waits for its test, and no trial precedes it. */
export function* waitingUploads(records: Records): Generator<string> {
  const places = new Map([...records.keys()].map((path) => [textOf(partsOfUpload(path)?.provider), path]));
  for (const path of places.values()) {
    const usable = samePlace(records, path).filter((each) => isUsable(records.get(each)));
    const stages = usable.map((each) => reviewOf(records.get(each))?.['stage']);
    const newest = usable.sort(
      (a, b) => Number(records.get(b)?.['state_time']) - Number(records.get(a)?.['state_time']),
    )[0];
    if (newest === undefined || stages.includes('canary')) continue;
    if (reviewOf(records.get(newest))?.['stage'] === 'uploaded') yield newest;
  }
}
