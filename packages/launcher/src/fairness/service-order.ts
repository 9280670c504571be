/**
 * The order of service of a launcher: by priority, or by fair shares if the configuration has them. Schedulers and
 * limits ask this object only, so that all of them change together.
 */

import {
  compareRequests,
  MIN_READY_REQUESTOR,
  priorityOf,
  type Clock,
  type NodeRequest,
  type QuotaInformation,
} from '@nodepool/core';
import type { FairShares } from '@nodepool/config';
import type { NodeEntry, Store } from '@nodepool/store';
import { compareFair, fairOrder, isBelowShare, type OrderFacts, type Place } from './fair-order.js';
import { FairUse, isInternal, type Capacity } from './fair-use.js';
import { Starvation, type StarvingClass } from './starvation.js';

/** Time for which a computed order of all requests is shown, milliseconds. */
const SHOWN_MS = 1000;

export interface FairSources {
  readonly store: Pick<Store, 'nodes' | 'requests'>;
  readonly clock: Clock;
  /** Returns the capacity of the providers of this launcher. */
  readonly capacity: () => Capacity;
  /** Returns the resources that count for the tenant of a node; undefined if none does. */
  readonly useOf: (entry: NodeEntry) => QuotaInformation | undefined;
}

/** Fair shares in force. */
export interface FairFacts extends OrderFacts {
  readonly use: FairUse;
  readonly starvation: Starvation;
  readonly clock: Clock;
}

export class ServiceOrder {
  private facts: FairFacts | undefined;
  private shown: { readonly at: number; readonly places: ReadonlyMap<string, Place> } | undefined;
  private unsubscribe: () => void = () => undefined;

  /** Applies the shares of the configuration. Returns true if the rule has changed, so that queues are sorted again. */
  apply(shares: FairShares | undefined, sources: FairSources): boolean {
    this.shown = undefined;
    if (shares !== undefined && this.facts !== undefined) {
      this.facts.use.apply(shares);
      return false;
    }
    if (shares === undefined && this.facts === undefined) return false;
    this.stop();
    if (shares !== undefined) this.facts = this.start(shares, sources);
    return true;
  }

  stop(): void {
    this.unsubscribe();
    this.facts?.use.stop();
    this.facts = undefined;
  }

  /** Undefined while only the priorities of requests count. */
  get fair(): FairFacts | undefined {
    return this.facts;
  }

  /** Compares requests by the order of service. Requests of launchers come last, as their priority demands. */
  compare(a: NodeRequest, b: NodeRequest): number {
    if (this.facts === undefined || isInternal(a.requestor) || isInternal(b.requestor)) return compareRequests(a, b);
    return compareFair(a, b, this.facts);
  }

  /**
   * Returns true if a later request must not overtake an earlier one even within the backfill window: it has a worse
   * priority, or its tenant has its share and that of the earlier one does not.
   */
  isStrict(earlier: NodeRequest, later: NodeRequest): boolean {
    const { facts } = this;
    const isSameTenant = earlier.tenant_name === later.tenant_name;
    if (facts === undefined || isSameTenant || isInternal(earlier.requestor) || isInternal(later.requestor)) {
      return priorityOf(earlier.id) < priorityOf(later.id);
    }
    return isBelowShare(facts.tenant(earlier.tenant_name)) && !isBelowShare(facts.tenant(later.tenant_name));
  }

  /** Returns the rank in the line for permits of a provider, which the order of service decides under fair shares. */
  permitRank({ id, requestor }: NodeRequest): string {
    return this.facts === undefined || requestor === MIN_READY_REQUESTOR ? priorityOf(id) : '';
  }

  /** Counts nodes that a request is about to get. The returned function ends that once their records count. */
  hold(request: NodeRequest, need: () => QuotaInformation): (() => void) | undefined {
    const { facts } = this;
    return facts === undefined || isInternal(request.requestor) ? undefined : facts.use.hold(request, need());
  }

  consider(starving: StarvingClass): void {
    const { facts } = this;
    if (facts === undefined || isInternal(starving.request.requestor)) return;
    facts.starvation.consider(starving, (a, b) => compareFair(a, b, facts));
  }

  /** Returns the place of a waiting request; undefined without fair shares. `waiting` are all waiting requests. */
  placeOf(id: string, waiting: () => Iterable<NodeRequest>): Place | undefined {
    const { facts } = this;
    if (facts === undefined) return undefined;
    const now = facts.clock.monotonic();
    if (this.shown === undefined || now - this.shown.at >= SHOWN_MS) {
      const requests = [...waiting()].filter(({ requestor }) => !isInternal(requestor));
      const places = new Map(fairOrder(requests, facts).map((place) => [place.request.id, place]));
      this.shown = { at: now, places };
    }
    return this.shown.places.get(id);
  }

  private start(shares: FairShares, { store, clock, capacity, useOf }: FairSources): FairFacts {
    const use = new FairUse(store, clock, capacity, useOf, shares);
    const starvation = new Starvation(clock);
    this.unsubscribe = store.requests.onChange(({ id, before, after }) => {
      if (before !== undefined && after?.request.state !== 'requested') {
        starvation.ended({ id, tenant_name: before.request.tenant_name });
      }
    });
    return {
      use,
      starvation,
      clock,
      tenant: (tenant) => use.tenant(tenant),
      project: (tenant, project) => use.project(tenant, project),
      senior: (request) => starvation.senior(request),
      get perNode() {
        return use.perNode;
      },
    };
  }
}
