/** Decides which images to build, with the reasons. */

import type { DiskImageConfig, ImageBuild } from '@nodepool/core';
import type { ImageStore } from '@nodepool/store';

export type BuildReason = 'requested' | 'missing' | 'formats' | 'source' | 'age';

export type BuildDecision =
  | { readonly kind: 'build'; readonly reason: BuildReason }
  /** Nothing to do until this time (unix seconds), unless something changes. */
  | { readonly kind: 'later'; readonly at: number }
  | { readonly kind: 'never'; readonly why: string };

export interface BuildQuestion {
  /** Undefined if the image is not in the configuration. */
  readonly image: DiskImageConfig | undefined;
  /** Formats to build, sorted. */
  readonly formats: readonly string[];
  readonly store: ImageStore;
  /** The identity of the present source; undefined if the image has none, or only a download can tell. */
  readonly source?: string | undefined;
  /** Unix seconds. */
  readonly now: number;
}

/** Decides about an image. The holder of the lock for building it applies the decision. */
export function decideBuild({ image, formats, store, source, now }: BuildQuestion): BuildDecision {
  if (image === undefined || image.abstract) return { kind: 'never', why: 'not a configured image' };
  if (image.pause) return { kind: 'never', why: 'paused by the configuration' };
  if (store.paused(image.name)) return { kind: 'never', why: 'paused by an operator' };
  if (formats.length === 0) return { kind: 'never', why: 'no provider uses it, and it has no formats' };
  if (store.buildRequested(image.name)) return { kind: 'build', reason: 'requested' };
  const newest = newestReadyBuild(store, image.name);
  if (newest === undefined) return { kind: 'build', reason: 'missing' };
  if (formats.some((format) => !newest.formats.includes(format))) return { kind: 'build', reason: 'formats' };
  if (source !== undefined) {
    return newest.source === source
      ? { kind: 'never', why: 'its source has not changed' }
      : { kind: 'build', reason: 'source' };
  }
  const due = newest.state_time + image.rebuildAgeMs / 1000;
  return due <= now ? { kind: 'build', reason: 'age' } : { kind: 'later', at: due };
}

/** Returns the rank by urgency, 0 for the most urgent: requested by an operator, without a build, incomplete, old. */
export function urgencyOf(reason: BuildReason): number {
  return ['requested', 'missing', 'formats', 'source', 'age'].indexOf(reason);
}

export function newestReadyBuild(store: ImageStore, image: string): ImageBuild | undefined {
  return readyBuilds(store, image)[0];
}

export function readyBuilds(store: ImageStore, image: string): readonly ImageBuild[] {
  return store
    .builds(image)
    .filter(({ state }) => state === 'ready')
    .reverse();
}
