/** Tells the waiting launches that a backing request failed, each failed request once. */

import { RefusedError, type Logger, type NodeRequest } from '@nodepool/core';
import type { BackingSettings } from './config.js';
import { isRefusal, requestDataOf } from './demand.js';
import type { Waiter } from './round.js';

export interface FailedRequestOptions {
  readonly settings: ReadonlyMap<string, BackingSettings>;
  readonly maxAttempts: number;
  readonly log: Logger;
}

export class FailedRequests {
  /** Ids of failed requests whose failure was reported to launches of this process. */
  private readonly reported = new Set<string>();

  constructor(private readonly options: FailedRequestOptions) {}

  /** Tells one launch of each failed request, and refuses the waiting launches after the last one of a row. */
  report(requests: readonly NodeRequest[], waiters: Iterable<Waiter>): void {
    const { settings, maxAttempts, log } = this.options;
    const failed = requests.filter(({ state }) => state === 'failed');
    for (const id of this.reported) if (!failed.some((request) => request.id === id)) this.reported.delete(id);
    for (const request of failed) {
      const data = requestDataOf(request, settings);
      if (data === undefined || this.reported.has(request.id)) continue;
      this.reported.add(request.id);
      const { label, attempt } = data;
      const reasons = reasonsOf(request);
      const why = describeFailure(request);
      log.warn('A backing request failed', { node_request_id: request.id, label, attempt, reason: reasons });
      const waiting = [...waiters].filter((waiter) => waiter.label === label);
      if (isRefusal({ request, data }, { maxAttempts })) for (const waiter of waiting) waiter.reject(refused(why));
      else waiting[0]?.onRetry?.(refused(why));
    }
  }
}

/** Returns why a backing request failed, in words. */
export function describeFailure(request: NodeRequest): string {
  const reasons = reasonsOf(request);
  const labels = request.node_types.join(', ');
  return `backing request ${request.id} for label ${labels} failed${reasons === '' ? '' : `: ${reasons}`}`;
}

/** Pools often decline for the same reason. */
function reasonsOf({ decline_reasons: reasons }: NodeRequest): string {
  return [...new Set(Object.values(reasons))].join('; ');
}

function refused(message: string): RefusedError {
  return new RefusedError(message, { outcome: 'not-applied' });
}
