/** The controllers of the builder. Each reconciles one kind of object with configuration and records. */

import { EmptyRecordRounds } from '@nodepool/store';
import { BuildController } from './build-controller.js';
import { CleanupController } from './cleanup-controller.js';
import type { BuilderContext } from './context.js';
import type { Controller } from './controller.js';
import { ImagePresence } from './image-presence.js';
import type { ImageProviders } from './image-providers.js';
import { Leftovers } from './leftovers.js';
import { OrphanFiles } from './orphan-files.js';
import { UploadController } from './upload-controller.js';

export interface BuilderControllers {
  readonly builds: BuildController;
  readonly uploads: UploadController;
  readonly cleanup: CleanupController;
  /** All controllers, in the order in which they apply a change. */
  readonly all: readonly Controller[];
}

export function createControllers(
  context: BuilderContext,
  providers: ImageProviders,
  workers: { readonly build: number; readonly upload: number },
): BuilderControllers {
  const builds = new BuildController(context, workers.build);
  const uploads = new UploadController(context, providers, workers.upload);
  const cleanup = new CleanupController(context, providers, (build) => uploads.isReading(build));
  const presence = new ImagePresence(context, providers);
  const orphans = new OrphanFiles(
    context,
    (build) => builds.isBuilding(build.image) || uploads.isReading(build),
    (image) => builds.isBuilding(image),
  );
  // Builders of the Python Nodepool do not clean up an image with an empty record of a build.
  const empty = new EmptyRecordRounds(context, 'remove empty records of builds', (call) =>
    context.store.images.removeEmptyBuilds(call),
  );
  const others = [presence, orphans, empty, new Leftovers(context)];
  return { builds, uploads, cleanup, all: [builds, uploads, cleanup, ...others] };
}
