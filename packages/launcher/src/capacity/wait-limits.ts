/** Limits how long requests may wait: the smallest `max-wait` of their labels, or the requestor's `start-by`. */

import { DEFAULT_MAX_WAIT_MS, type NodepoolConfig } from '@nodepool/config';
import { isJsonObject, type Clock, type JsonValue, type NodeRequest } from '@nodepool/core';
import type { RequestStore } from '@nodepool/store';

/** The end of a request's wait. */
export interface WaitLimit {
  /** Milliseconds since the epoch; `Infinity` if there is no limit. */
  readonly at: number;
  /** The setting that causes the limit and the wait until then, in words. */
  readonly reason: string;
}

export class WaitLimits {
  private labels: NodepoolConfig['labels'] = new Map();
  /** When requests without `created_time` were first seen, in milliseconds since the epoch. */
  private readonly firstSeen = new Map<string, number>();
  private readonly unsubscribe: () => void;

  constructor(
    requests: Pick<RequestStore, 'onChange'>,
    private readonly clock: Clock,
  ) {
    this.unsubscribe = requests.onChange(({ id, after }) => {
      if (after === undefined) this.firstSeen.delete(id);
    });
  }

  apply({ labels }: Pick<NodepoolConfig, 'labels'>): void {
    this.labels = labels;
  }

  stop(): void {
    this.unsubscribe();
  }

  limitOf(request: NodeRequest): WaitLimit {
    const since = this.sinceOf(request);
    let limit: WaitLimit = { at: Infinity, reason: '' };
    for (const name of request.node_types) {
      const { maxWaitMs } = this.labels.get(name) ?? { maxWaitMs: DEFAULT_MAX_WAIT_MS };
      const at = since + maxWaitMs;
      if (at < limit.at) limit = { at, reason: `it has waited for ${durationOf(maxWaitMs)} (max-wait of ${name})` };
    }
    const startBy = startByOf(request.requestor_data);
    if (startBy === undefined || startBy >= limit.at) return limit;
    return { at: startBy, reason: `its requestor wanted it by ${new Date(startBy).toISOString()} (start-by)` };
  }

  private sinceOf({ id, created_time: created }: NodeRequest): number {
    const now = this.clock.now();
    if (created !== null && created * 1000 <= now) return created * 1000;
    const seen = this.firstSeen.get(id) ?? now;
    this.firstSeen.set(id, seen);
    return seen;
  }
}

/** Reads `start-by`, unix seconds or an ISO 8601 time. Returns ms since the epoch, or undefined for other values. */
function startByOf(data: JsonValue): number | undefined {
  const value = isJsonObject(data) ? data['start-by'] : undefined;
  const at = typeof value === 'number' ? value * 1000 : typeof value === 'string' ? Date.parse(value) : NaN;
  // The largest time value of `Date`.
  return Math.abs(at) <= 8.64e15 ? at : undefined;
}

function durationOf(ms: number): string {
  const minutes = ms / 60_000;
  if (minutes < 1) return `${Math.round(ms / 1000)} s`;
  return minutes < 120 ? `${Math.round(minutes)} min` : `${Math.round(minutes / 6) / 10} h`;
}
