/** The state of one disk image with its builds and uploads, as status pages show it. */

import { shortened, type ImageBuild } from '@nodepool/core';
import type { ImageStore } from '../images/image-store.js';

export interface ImageReport {
  readonly name: string;
  readonly paused: boolean;
  /** Time of the pending build request, unix seconds; null if there is none. */
  readonly requested: number | null;
  /** The last builds, newest first; `since` in unix seconds. */
  readonly builds: readonly {
    readonly id: string;
    readonly state: string;
    readonly since: number;
    readonly builder: string;
    readonly formats: readonly string[];
    /** The reason of its failure; null if it did not fail, or if a later build failed as well. */
    readonly failure: string | null;
    /** Whole seconds from the start of the build to its end; null if it has not ended or was imported. */
    readonly duration: number | null;
  }[];
  /** The last uploads, newest first. */
  readonly uploads: readonly {
    readonly provider: string;
    readonly build: string;
    readonly id: string;
    readonly state: string;
    readonly since: number;
    /** Percentage that the cloud has received; null if unknown. */
    readonly progress: number | null;
    readonly externalName: string | null;
    readonly failure: string | null;
  }[];
  /** The last failed build, even if a newer one succeeded; `log` is its path on the host of the builder. */
  readonly lastFailure: {
    readonly text: string;
    readonly time: number;
    readonly log: string | null;
    readonly builder: string | null;
  } | null;
}

const MAX_BUILDS = 10;
const MAX_UPLOADS = 200;
const MAX_TEXT = 300;

/** Returns the state of an image. `pause`: the configuration pauses it. */
export function reportImage(images: ImageStore, name: string, pause: boolean): ImageReport {
  const failure = images.lastBuildFailure(name);
  return {
    name,
    paused: pause || images.paused(name),
    requested: images.buildRequestedAt(name) ?? null,
    builds: images
      .builds(name)
      .slice(-MAX_BUILDS)
      .reverse()
      .map((build) => ({
        ...{ id: build.id, state: build.state, since: build.state_time, formats: build.formats },
        builder: shortened(build.builder ?? '', MAX_TEXT),
        failure: failure?.build === build.id ? shortened(failure.message, MAX_TEXT) : null,
        duration: durationOf(build, images.buildBegan({ image: name, id: build.id })),
      })),
    uploads: [...images.uploads({ image: name })]
      .slice(-MAX_UPLOADS)
      .reverse()
      .map(
        ({ provider, build, id, state, state_time: since, progress = null, external_name: externalName, listed }) => ({
          ...{ provider, build, id, state, since, progress },
          externalName: externalName === null ? null : shortened(externalName, MAX_TEXT),
          failure: listed === false ? 'the cloud does not list the image any more' : null,
        }),
      ),
    lastFailure:
      failure === undefined
        ? null
        : {
            text: shortened(failure.message, MAX_TEXT),
            time: failure.time,
            log: failure.log,
            builder: failure.builder,
          },
  };
}

function durationOf({ state, state_time: ended }: ImageBuild, began: number | undefined): number | null {
  if ((state !== 'ready' && state !== 'failed') || began === undefined || began > ended) return null;
  // The times are from two clocks: ZooKeeper's and the builder's.
  return Math.round(ended - began);
}
