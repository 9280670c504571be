/** A job of a requestor that behaves as Zuul: requests a node, locks and uses it, and returns it. */

import { sleep, type Clock } from '@nodepool/core';
import { RequestFailedError, type Requestor } from '@nodepool/requestor';
import type { Wait } from './statistics.js';

export interface JobOptions {
  readonly requestor: Requestor;
  readonly clock: Clock;
  readonly label: string;
  /** Duration of the job after it has its node (ms). */
  readonly durationMs: number;
}

/** Runs one job. `onWait` receives the wait as soon as it ends. */
export async function runJob(options: JobOptions, onWait: (wait: Wait) => void): Promise<void> {
  const { requestor, clock, label, durationMs } = options;
  const writtenAt = clock.monotonic();
  const request = await requestor.request({ labels: [label], durable: true });
  try {
    await request.fulfilled();
  } catch (error) {
    if (!(error instanceof RequestFailedError)) throw error;
    await request.cancel();
    onWait({ writtenAt, waitMs: undefined, failure: error.message, provider: undefined });
    return;
  }
  const waitMs = clock.monotonic() - writtenAt;
  const lease = await request.take();
  onWait({ writtenAt, waitMs, failure: undefined, provider: lease.nodes[0]?.provider ?? undefined });
  await sleep(clock, durationMs);
  await lease.return();
}
