/**
 * Loaded into a launcher with `--require`, hence also into its worker threads, where it does nothing. Counts what
 * `NODEPOOL_COST_OF` names, from the first SIGWINCH to the second one, and then writes the profile as JSON to the file
 * in `NODEPOOL_COST_FILE`.
 */

import { writeFileSync } from 'node:fs';
import { Session } from 'node:inspector';
import { isMainThread } from 'node:worker_threads';

/** Quantity that a launcher counts. Each needs a separate launcher, because counting calls changes allocations. */
export type Cost = 'calls' | 'bytes';

/** Mean distance of the sampled allocations, bytes. */
const SAMPLING_INTERVAL = 4096;

const file = process.env['NODEPOOL_COST_FILE'];
if (file !== undefined && isMainThread) {
  const session = new Session();
  session.connect();
  const end = process.env['NODEPOOL_COST_OF'] === 'calls' ? countCalls : sampleAllocations;
  process.once('SIGWINCH', () => {
    const write = end(session);
    process.once('SIGWINCH', () => write(file));
  });
}

/** Writes a profile to a file. */
type WriteProfile = (to: string) => void;

function countCalls(session: Session): WriteProfile {
  session.post('Profiler.enable');
  session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  return (to) => {
    session.post('Profiler.takePreciseCoverage', (error, coverage) => {
      if (error !== null) throw error;
      writeFileSync(to, JSON.stringify(coverage.result));
    });
  };
}

function sampleAllocations(session: Session): WriteProfile {
  // The types of Node.js lack the last two members, which include objects that are no longer alive.
  const parameters: { readonly samplingInterval: number } & Readonly<Record<string, unknown>> = {
    samplingInterval: SAMPLING_INTERVAL,
    includeObjectsCollectedByMajorGC: true,
    includeObjectsCollectedByMinorGC: true,
  };
  session.post('HeapProfiler.startSampling', parameters);
  return (to) => {
    session.post('HeapProfiler.stopSampling', (error, sampled) => {
      if (error !== null) throw error;
      writeFileSync(to, JSON.stringify(sampled.profile));
    });
  };
}
