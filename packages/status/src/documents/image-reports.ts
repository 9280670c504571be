/** The disk images that a program knows, from its configuration and from the records. */

import type { NodepoolConfig } from '@nodepool/config';
import { shortened, type ImageBuild } from '@nodepool/core';
import type { Store } from '@nodepool/store';
import type { ImageStatus } from '../client/model.js';

/** The state of a disk image with its builds and uploads. */
type ImageReport = Omit<ImageStatus, 'labels'>;

const MAX_BUILDS = 10;
const MAX_UPLOADS = 200;
const MAX_TEXT = 300;

export interface ImageSources {
  readonly store: Pick<Store, 'images'>;
  readonly config: () => Pick<NodepoolConfig, 'diskImages'>;
}

export function imageNames({ store, config }: ImageSources): ReadonlySet<string> {
  const configured = [...config().diskImages.values()].filter(({ abstract }) => !abstract);
  return new Set([...configured.map(({ name }) => name), ...store.images.images()]);
}

export function imageReport({ store: { images }, config }: ImageSources, name: string): ImageReport {
  const pause = config().diskImages.get(name)?.pause === true;
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
