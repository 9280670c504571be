/** The request classes that pools have to decide about, in the order of service. */

import type { ClassLine } from './class-line.js';
import { PriorityLine } from './class-line.js';
import type { RequestClass } from './open-requests.js';

/** The pools that have to decide about a class: all that can serve it, or the given ones. */
export interface PendingPools<P> {
  everywhere: boolean;
  readonly pools: Set<P>;
}

export class ClassQueue<P> {
  private readonly pending = new Map<RequestClass, PendingPools<P>>();
  /** Keys of `pending`, in the order of service. */
  private line: ClassLine = new PriorityLine();

  /** Changes the order of service. */
  use(line: ClassLine): void {
    this.line = line;
    line.reset(this.pending.keys());
  }

  has(requestClass: RequestClass): boolean {
    return this.pending.has(requestClass);
  }

  /** Removes the first class and its pending pools from the queue. */
  take(): { readonly requestClass: RequestClass; readonly pending: PendingPools<P> } | undefined {
    for (;;) {
      const requestClass = this.line.shift();
      if (requestClass === undefined) return undefined;
      const pending = this.pending.get(requestClass);
      this.pending.delete(requestClass);
      if (pending !== undefined) return { requestClass, pending };
    }
  }

  delete(requestClass: RequestClass): void {
    this.pending.delete(requestClass);
  }

  forget(pool: P): void {
    for (const { pools } of this.pending.values()) pools.delete(pool);
  }

  /** Removes a class from the queue, but keeps its pending pools. Returns true if the class was queued. */
  leave(requestClass: RequestClass): boolean {
    return this.pending.has(requestClass) && this.line.leave(requestClass);
  }

  /** Returns the pending pools of a class, which is queued if it was not. */
  put(requestClass: RequestClass): PendingPools<P> {
    let pending = this.pending.get(requestClass);
    if (pending === undefined) {
      pending = { everywhere: false, pools: new Set() };
      this.pending.set(requestClass, pending);
      this.line.enter(requestClass);
    }
    return pending;
  }

  /** Queues every class for all pools. */
  putAll(classes: Iterable<RequestClass>): void {
    for (const requestClass of classes) {
      const pending = this.pending.get(requestClass) ?? { everywhere: true, pools: new Set() };
      pending.everywhere = true;
      this.pending.set(requestClass, pending);
    }
    this.line.reset(this.pending.keys());
  }

  /** Adds a class with pending pools to the queue. */
  enter(requestClass: RequestClass): void {
    this.line.enter(requestClass);
  }
}
