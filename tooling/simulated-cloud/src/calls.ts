/** The calls that a simulated cloud received: counts by operation, and the last calls in full. */

import type { IncomingHttpHeaders } from 'node:http';

/** A call as the cloud received it. */
export interface CloudCall {
  /** e.g. `instances.insert`; `unknown`, or a name that ends in `.unknown`, if no route matches. */
  readonly operation: string;
  readonly method: string;
  /** Path and query. */
  readonly path: string;
}

/** Maximum number of calls that are kept in full. */
const MAX_LOGGED_CALLS = 1000;

export class CallLog<C extends CloudCall = CloudCall> {
  private readonly counts = new Map<string, number>();
  private total = 0;
  private recent: C[] = [];
  /** Passwords and tokens in the headers of calls. */
  readonly credentials = new Set<string>();

  /**
   * Returns the number of calls since the start or the last `reset`: all, those of an operation, or those of a group
   * such as `compute`.
   */
  count(operationOrGroup?: string): number {
    if (operationOrGroup === undefined) return this.total;
    const counted = [...this.counts].filter(([operation]) => isWithin(operation, operationOrGroup));
    return counted.reduce((sum, [, count]) => sum + count, 0);
  }

  /** Returns the number of calls by operation. */
  byOperation(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.counts].sort(([a], [b]) => a.localeCompare(b)));
  }

  /** Returns the last calls, oldest first, up to 1,000. */
  last(count = MAX_LOGGED_CALLS): readonly C[] {
    return this.recent.slice(-count);
  }

  reset(): void {
    this.counts.clear();
    this.total = 0;
    this.recent = [];
  }

  recordHeaders({ authorization, 'x-auth-token': token }: IncomingHttpHeaders): void {
    const value = authorization?.replace(/^\w+ /, '');
    if (value !== undefined) this.credentials.add(value);
    if (typeof token === 'string') this.credentials.add(token);
  }

  record(call: C): void {
    this.total += 1;
    this.counts.set(call.operation, (this.counts.get(call.operation) ?? 0) + 1);
    this.recent.push(call);
    if (this.recent.length > 2 * MAX_LOGGED_CALLS) this.recent = this.recent.slice(-MAX_LOGGED_CALLS);
  }
}

/**
 * Returns true if the operation equals the given one or belongs to the given group: `compute` contains
 * `compute.servers.list`.
 */
export function isWithin(operation: string, operationOrGroup: string): boolean {
  return operation === operationOrGroup || operation.startsWith(`${operationOrGroup}.`);
}
