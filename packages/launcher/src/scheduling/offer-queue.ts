/** Pending offers of request classes, in the order of service. */

import { compareClasses, type RequestClass } from './open-requests.js';

/** Pending offers of a class: to all pools that can serve it, or to the given ones. */
export interface Offer<P> {
  everywhere: boolean;
  readonly pools: Set<P>;
}

export class OfferQueue<P> {
  private readonly offers = new Map<RequestClass, Offer<P>>();
  /** Keys of `offers`, in the order of service. */
  private queue: RequestClass[] = [];

  has(requestClass: RequestClass): boolean {
    return this.offers.has(requestClass);
  }

  /** Removes the first class and its offer from the queue. */
  take(): { readonly requestClass: RequestClass; readonly offer: Offer<P> } | undefined {
    for (;;) {
      const requestClass = this.queue.shift();
      if (requestClass === undefined) return undefined;
      const offer = this.offers.get(requestClass);
      this.offers.delete(requestClass);
      if (offer !== undefined) return { requestClass, offer };
    }
  }

  delete(requestClass: RequestClass): void {
    this.offers.delete(requestClass);
  }

  /** Removes a pool from all offers. */
  forget(pool: P): void {
    for (const { pools } of this.offers.values()) pools.delete(pool);
  }

  /** Removes a class from the queue, but keeps its offer. Returns true if the class was queued. */
  leave(requestClass: RequestClass): boolean {
    const index = this.offers.has(requestClass) ? this.queue.indexOf(requestClass) : -1;
    if (index >= 0) this.queue.splice(index, 1);
    return index >= 0;
  }

  /** Returns the pending offer of a class; adds an empty one if there is none. */
  put(requestClass: RequestClass): Offer<P> {
    let offer = this.offers.get(requestClass);
    if (offer === undefined) {
      offer = { everywhere: false, pools: new Set() };
      this.offers.set(requestClass, offer);
      this.enter(requestClass);
    }
    return offer;
  }

  /** Offers every class to all pools. */
  putAll(classes: Iterable<RequestClass>): void {
    for (const requestClass of classes) {
      const offer = this.offers.get(requestClass) ?? { everywhere: true, pools: new Set() };
      offer.everywhere = true;
      this.offers.set(requestClass, offer);
    }
    this.queue = [...this.offers.keys()].sort(compareClasses);
  }

  /** Adds a class with a pending offer to the queue. */
  enter(requestClass: RequestClass): void {
    let low = 0;
    let high = this.queue.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const other = this.queue[middle];
      if (other !== undefined && compareClasses(other, requestClass) < 0) low = middle + 1;
      else high = middle;
    }
    this.queue.splice(low, 0, requestClass);
  }
}
