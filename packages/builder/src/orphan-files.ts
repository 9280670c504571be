/**
 * Deletes temporary files of sources that no build needs, and files of builds without a record, left by a builder that
 * died in between or whose record another builder deleted. It checks the disk at intervals, since a disk sends no
 * events. It deletes nothing if the files belong to another installation, or while deletions are suspended.
 */

import type { NodepoolConfig } from '@nodepool/config';
import { buildPath, type BuildRef } from '@nodepool/store';
import { WorkQueue } from '@nodepool/core';
import { INSTALLATION_FILE } from './builder-id.js';
import { FOREIGN_FILES } from './builder-metrics.js';
import type { BuilderContext } from './context.js';
import type { SourceLeftover } from './source/image-sources.js';

/** Interval (ms) between checks of the disk. */
const INTERVAL_MS = 600_000;
/** Time (ms) without a record after which files are deleted. */
const SETTLE_MS = 60_000;

/** Time (ms) for which a part of a download is kept, so that a later build continues it. */
const RESUMABLE_MS = 86_400_000;

/** The only key of the queue. */
const DISK = 'disk';

export class OrphanFiles {
  /** Time (`Clock.monotonic` milliseconds) at which files without a record were first seen, by base path. */
  private seen: ReadonlyMap<string, number> = new Map();
  private config: NodepoolConfig | undefined;
  /** True if the log contains that the files belong to another installation. */
  private isReported = false;
  private readonly queue: WorkQueue<typeof DISK>;

  constructor(
    private readonly context: BuilderContext,
    /** Returns true if this builder is writing or reading files of the build. */
    private readonly isInUse: (build: BuildRef) => boolean,
    /** Returns true if this builder is building the image. */
    private readonly isImageBuilt: (image: string) => boolean,
  ) {
    this.queue = new WorkQueue({
      ...context,
      name: () => 'look for files without a record',
      backOff: { firstMs: SETTLE_MS, longestMs: INTERVAL_MS },
      reconcile: async (_disk, { signal }) => {
        if (context.store.complete) await this.sweep(signal);
        return { requeueAfterMs: this.seen.size > 0 ? SETTLE_MS : INTERVAL_MS };
      },
      onFailure: (_disk, error, retry) => {
        if (retry === undefined) return;
        const fields = { error, seconds: retry.waitMs / 1000 };
        context.log.warn('The search for files without a record failed; retrying', fields);
      },
    });
  }

  apply(config: NodepoolConfig): void {
    this.config = config;
    this.queue.add(DISK);
  }

  stop(reason: Error): void {
    this.queue.abort(reason);
  }

  /** Resolves with true if the records of the installation tell which files are needed. */
  private async mayDelete(signal: AbortSignal): Promise<boolean> {
    const { files, store, log, metrics, hostname } = this.context;
    const installation = await store.installation.read({ signal });
    const owner = await files.installation();
    if (owner === undefined) await files.setInstallation(installation);
    const isForeign = owner !== undefined && owner !== installation;
    metrics.set(FOREIGN_FILES, { host: hostname }, isForeign ? 1 : 0);
    if (isForeign && !this.isReported) {
      const hint = `correct zookeeper-servers or the id of the installation, or remove ${INSTALLATION_FILE} in images-dir`;
      log.error(`The files of builds belong to another installation and are not deleted: ${hint}`, undefined, {
        files: owner,
        zookeeper: installation,
      });
    }
    this.isReported = isForeign;
    return !isForeign && (await store.suspensions.check(null, { signal })) === undefined;
  }

  private async sweep(signal: AbortSignal): Promise<void> {
    const { files, clock, log } = this.context;
    if (!(await this.mayDelete(signal))) {
      this.seen = new Map();
      return;
    }
    const seen = new Map<string, number>();
    const now = clock.monotonic();
    const hasSettled = (path: string): boolean => {
      const first = this.seen.get(path) ?? now;
      if (now - first < SETTLE_MS) {
        seen.set(path, first);
        return false;
      }
      return true;
    };
    for (const build of await files.list()) {
      if (await this.isNeeded(build, signal)) continue;
      if (!hasSettled(files.basePath(build))) continue;
      log.info('Removing files of a build that has no record', { image: build.image, build_id: build.id });
      await files.remove(build);
    }
    for (const leftover of await this.context.sources.leftovers()) {
      const { image, path } = leftover;
      if (this.isSourceNeeded(leftover) || !hasSettled(path)) continue;
      log.info('Removing a temporary file of a source that no build needs', { image, file: path });
      await this.context.sources.remove(leftover);
    }
    this.seen = seen;
  }

  /** Returns true if a build of the image runs, here or elsewhere, or may still continue its download. */
  private isSourceNeeded({ image, isResumable, changedMs }: SourceLeftover): boolean {
    const { store, clock } = this.context;
    if (this.isImageBuilt(image) || store.images.isBuilding(image)) return true;
    const isDownloaded = this.config?.diskImages.get(image)?.source?.url !== undefined;
    return isResumable && isDownloaded && clock.now() - changedMs < RESUMABLE_MS;
  }

  /** Resolves with true if the build has a record. Asks the server if the cache has none: it lacks unreadable ones. */
  private async isNeeded(build: BuildRef, signal: AbortSignal): Promise<boolean> {
    const { store } = this.context;
    if (this.isInUse(build) || store.images.build(build) !== undefined) return true;
    const path = buildPath(build.image, build.id);
    await store.zooKeeper.sync(path, { signal });
    return (await store.zooKeeper.exists(path, { signal })) !== undefined;
  }
}
