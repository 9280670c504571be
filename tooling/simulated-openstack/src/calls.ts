/** The calls that came in: counted by operation, and the last ones kept. */

import type { ServiceName } from './services.js';

/** One call, as the cloud saw it. */
export interface CloudCall {
  readonly service: ServiceName;
  /** e.g. `compute.servers.create`; `<service>.unknown` where nothing answers. */
  readonly operation: string;
  readonly method: string;
  /** Path and query, below the service. */
  readonly path: string;
  /** Name of the caller's project; undefined before a token says it. */
  readonly project: string | undefined;
}

/** So many calls are kept in full. */
const KEPT = 1000;

export class CallLog {
  private counts = new Map<string, number>();
  private total = 0;
  private recent: CloudCall[] = [];

  /** Calls since the start or the last `reset`: all, or those of an operation, or of a service. */
  count(operationOrService?: string): number {
    if (operationOrService === undefined) return this.total;
    let sum = 0;
    for (const [operation, count] of this.counts) {
      if (operation === operationOrService || operation.startsWith(`${operationOrService}.`)) sum += count;
    }
    return sum;
  }

  /** Counts by operation. */
  byOperation(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.counts].sort(([a], [b]) => a.localeCompare(b)));
  }

  /** The last calls, oldest first; at most a thousand are known. */
  last(count = KEPT): readonly CloudCall[] {
    return this.recent.slice(-count);
  }

  reset(): void {
    this.counts = new Map();
    this.total = 0;
    this.recent = [];
  }

  record(call: CloudCall): void {
    this.total += 1;
    this.counts.set(call.operation, (this.counts.get(call.operation) ?? 0) + 1);
    this.recent.push(call);
    if (this.recent.length > 2 * KEPT) this.recent = this.recent.slice(-KEPT);
  }
}
