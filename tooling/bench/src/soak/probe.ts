/**
 * Loaded into a launcher with `--require`. On SIGWINCH it collects the garbage and appends a line of JSON to the file
 * in `NODEPOOL_SOAK_FILE`: a sample of the process. A heap without garbage shows a leak that resident memory hides.
 */

import { appendFileSync, readdirSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** The resources of a launcher after a garbage collection. */
export interface Sample {
  /** Unix milliseconds. */
  readonly time: number;
  readonly heapBytes: number;
  readonly residentBytes: number;
  readonly fileDescriptors: number;
  /** Timers, sockets and other resources that keep an event loop busy. */
  readonly resources: number;
}

const file = process.env['NODEPOOL_SOAK_FILE'];
if (file !== undefined) {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  process.on('SIGWINCH', () => {
    // The second collection frees the objects that the first one finalized.
    collectGarbage();
    collectGarbage();
    const { heapUsed, rss } = process.memoryUsage();
    const sample: Sample = {
      time: Date.now(),
      heapBytes: heapUsed,
      residentBytes: rss,
      fileDescriptors: readdirSync('/proc/self/fd').length,
      resources: process.getActiveResourcesInfo().length,
    };
    appendFileSync(file, `${JSON.stringify(sample)}\n`);
  });
}
