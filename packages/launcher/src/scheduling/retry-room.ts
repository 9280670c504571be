/** Room for the next attempt of a launch, while the instance of the last one is still being deleted. */

import { type Logger, type PoolConfig, type Provider, abortReason } from '@nodepool/core';
import type { NodeHandle } from '@nodepool/store';
import type { LauncherContext } from '../context.js';
import { lackInWords, type Lack, type QuotaScope } from '../quota/quota-scope.js';

/** A launch of which an attempt failed. */
interface RetryJob {
  readonly node: NodeHandle;
  readonly provider: Provider;
  readonly pool: PoolConfig;
  /** Aborts when the request ends, or when its lock is lost. */
  readonly signal: AbortSignal;
  readonly log: Logger;
  /** Returns the limit that another instance of the node would exceed, given all records up to this id. */
  readonly retryLack: (lastId: string) => Promise<Lack | undefined>;
}

/**
 * Waits while the limits have no room for both the next instance and what is being deleted: the instance of a failed
 * attempt counts until its record is removed. `lastId`: the newest record to count for certain.
 */
export async function untilRetryFits({ decisions }: LauncherContext, job: RetryJob, lastId: string): Promise<void> {
  for (let waits = 0; ; waits += 1) {
    const lack = await job.retryLack(lastId);
    if (lack === undefined) return;
    if (waits === 0) {
      const reason = lackInWords(lack);
      job.log.info('The next launch attempt waits for the deletion of failed instances, which count until then', {
        reason,
      });
      const by = `${job.provider.config.name}/${job.pool.name}`;
      decisions.record('node', job.node.id, by, 'waits for the deletion of a failed instance', reason);
    }
    await untilRoomChanges(lack.scope, job.signal);
  }
}

async function untilRoomChanges(scope: QuotaScope, signal: AbortSignal): Promise<void> {
  let giveUp = (): void => undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      giveUp = () => reject(abortReason(signal));
      scope.wait(resolve);
      signal.addEventListener('abort', giveUp, { once: true });
      if (signal.aborted) giveUp();
    });
  } finally {
    signal.removeEventListener('abort', giveUp);
  }
}
