/** Logs the running work of a builder and what it waits for as `nodepool.stack_dump`. */

import { dumpProcess, type ProcessDumpSources } from '@nodepool/daemon';
import type { Logger } from '@nodepool/core';
import type { BuilderActivity } from './activity.js';

export interface BuilderDumpSources extends ProcessDumpSources {
  readonly activity: () => BuilderActivity;
}

/** Logs one line for the process and one for each running operation. */
export function dumpBuilder(sources: BuilderDumpSources, log: Logger): void {
  dumpProcess(sources, log, (to) => {
    const { builds, uploads, uploadsWaiting, cleanups, providers } = sources.activity();
    to.info('Builder', { builds: builds.length, uploads: uploads.length, uploads_waiting: uploadsWaiting });
    for (const { provider, ready } of providers) to.info('Provider', { provider, ready });
    for (const { image, build, ageMs } of builds) {
      to.info('Build in progress', { image, build_id: build, age: ageMs / 1000 });
    }
    for (const { image, build, provider, upload, ageMs, sentBytes, totalBytes } of uploads) {
      to.info('Upload in progress', {
        ...{ image, provider, build_id: build, upload_id: upload },
        age: ageMs / 1000,
        sent_bytes: sentBytes,
        bytes: totalBytes,
      });
    }
    for (const { what, ageMs } of cleanups) to.info('Removal in progress', { what, age: ageMs / 1000 });
  });
}
