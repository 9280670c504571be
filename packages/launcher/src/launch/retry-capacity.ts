import { abortReason } from '@nodepool/core';
import type { LauncherContext } from '../context.js';
import { describeShortfall, type QuotaScope } from '../quota/quota-scope.js';
import { retryShortfall } from '../quota/quota-confirmation.js';
import { useOf } from '../quota/need.js';
import { placeOf, type LaunchJob } from './launch-job.js';

/**
 * Resolves when the limits have capacity for the next instance besides those that are being deleted, which count until
 * their records are removed. `lastId` is the id of the newest record to count.
 */
export async function retryCapacity(
  { decisions, timelines }: Pick<LauncherContext, 'decisions' | 'timelines'>,
  job: LaunchJob,
  lastId: string,
): Promise<void> {
  for (let waits = 0; ; waits += 1) {
    const shortfall = await retryShortfall(job.pool, {
      request: job.request,
      lastId,
      need: useOf(job.node.node.resources),
    });
    if (shortfall === undefined) return;
    if (waits === 0) {
      const reason = describeShortfall(shortfall);
      job.log.info('The next launch attempt waits for the deletion of failed instances, which count until then', {
        reason,
      });
      decisions.record('node', job.node.id, job.pool.name, 'waits for the deletion of a failed instance', reason);
      timelines.stage(job.node.id, placeOf(job), 'limit', reason);
    }
    await scopeChange(shortfall.scope, job.signal);
  }
}

/** Resolves when the scope may have more capacity. Rejects when the signal aborts. */
async function scopeChange(scope: QuotaScope, signal: AbortSignal): Promise<void> {
  let onAbort = (): void => undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      onAbort = () => reject(abortReason(signal));
      scope.wait(resolve);
      signal.addEventListener('abort', onAbort, { once: true });
      if (signal.aborted) onAbort();
    });
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
