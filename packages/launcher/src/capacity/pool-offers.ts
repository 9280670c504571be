/**
 * The offers of a pool: every combination of label, zone and machine type that the pool can launch. A circuit breaker
 * per offer keeps requests away from offers that fail.
 */

import type { LabelConfig, PoolConfig } from '@nodepool/core';
import type { LauncherContext } from '../context.js';
import { BREAKER_STATES, BREAKER_TRANSITIONS } from '../metrics/launcher-metrics.js';
import type { BreakerCause, BreakerObstacle, BreakerState, Offer, OfferHealth } from '@nodepool/status';
import { CircuitBreaker, type BreakerFailure, type LaunchEvidence } from './circuit-breaker.js';
import { describeObstacle } from '@nodepool/status';
import { OfferInterruptions } from './offer-interruptions.js';

/** The offers for nodes that are launched together. */
export interface OfferPlan {
  readonly zone: string | undefined;
  /** One offer per label, in the order of the labels. */
  readonly offers: readonly Offer[];
  /**
   * The reason why no zone can serve all the labels at the moment; undefined if the plan can be used. With a cause of
   * `USABLE_ANYWAY`, the offers can be used if no other pool serves the labels.
   */
  readonly blocked: BlockedOffer | undefined;
}

export interface BlockedOffer {
  readonly cause: BreakerCause;
  readonly reason: string;
}

/**
 * Number of refusals in a row, and the time for which they must have lasted (ms), before a refusal that may pass counts
 * as a rejected configuration. A kubelet repeats a failed pull of an image every five minutes.
 */
const PERSISTENT_REFUSALS = 4;
const PERSISTENT_MS = 300_000;

/** Causes with which an offer still launches nodes, and is used if there is no better one. */
export const USABLE_ANYWAY: ReadonlySet<BreakerCause | undefined> = new Set(['slow', 'interrupted']);

/** Breaker states as values of the metric. */
export const STATE_VALUES: Readonly<Record<BreakerState, number>> = { closed: 0, 'half-open': 1, open: 2 };

interface KnownOffer {
  readonly offer: Offer;
  readonly breaker: CircuitBreaker;
  /** State of the breaker in the last report. */
  reported: BreakerState;
}

export class PoolOffers {
  private readonly known = new Map<string, KnownOffer>();
  private readonly interruptions = new OfferInterruptions();
  /** The zones that launches choose from; empty if the cloud chooses the zone. */
  private zones: readonly string[] = [];

  constructor(
    private readonly context: Pick<LauncherContext, 'clock' | 'random' | 'log' | 'metrics' | 'decisions'>,
    private readonly provider: string,
    private readonly pool: PoolConfig,
    /** Returns false for a machine type that the cloud rejects, or whose resource need is unknown. */
    private readonly isKnown: (label: string, machineType: string | undefined) => boolean,
    signal: AbortSignal,
    /** Called after every transition of a breaker. */
    private readonly onChange: () => void,
  ) {
    signal.addEventListener('abort', () => this.stop(), { once: true });
  }

  setZones(zones: readonly string[]): void {
    this.zones = zones;
    if (zones.length === 0) return;
    // Offers without a zone were used while the zones were unknown, and are not chosen any more.
    for (const [key, known] of this.known) {
      if (known.offer.zone !== undefined) continue;
      this.forget(known);
      this.known.delete(key);
    }
  }

  /**
   * Chooses offers for nodes of these labels, all in the same zone (`zone` if given). `skip` is the number of usable
   * machine types to pass over; a label with fewer ones keeps its last.
   */
  plan(labels: readonly string[], zone?: string, skip = 0): OfferPlan {
    const zones = zone !== undefined ? [zone] : this.zones.length > 0 ? this.zones : [undefined];
    const admitted = this.choose(labels, zones, skip, (offer) => this.admits(offer));
    if (admitted !== undefined) return { zone: admitted.zone, offers: admitted.offers, blocked: undefined };
    const usable = this.choose(labels, zones, skip, (offer) => this.admits(offer) || this.isUsableAnyway(offer));
    if (usable !== undefined) return { ...usable, blocked: this.blocked(usable.offers) };
    const fallback = zones[Math.floor(this.context.random.next() * zones.length)];
    const offers = labels.map((label) => this.offersOf(label, fallback)[0] ?? offerOf(label, fallback, undefined));
    const all = zones.flatMap((each) => labels.flatMap((label) => this.offersOf(label, each)));
    return { zone: fallback, offers, blocked: this.blocked(all) };
  }

  /**
   * Returns another offer for a node whose launch with `failed` has failed: another machine type in the same zone. If
   * the node is the only one of its request, the offer may be in another zone.
   */
  alternative(failed: Offer, isAlone: boolean, isTried: (offer: Offer) => boolean): Offer | undefined {
    const zones = this.knownZone(failed.zone) === undefined ? [undefined] : [failed.zone];
    if (isAlone) zones.push(...this.zones.filter((zone) => zone !== failed.zone));
    for (const zone of zones) {
      for (const offer of this.offersOf(failed.label, zone)) {
        if (!isTried(offer) && this.admits(offer)) return offer;
      }
    }
    return undefined;
  }

  admits(offer: Offer): boolean {
    return this.isKnown(offer.label, offer.machineType) && !this.isClosed(offer);
  }

  obstacleOf(offer: Offer): BreakerObstacle | undefined {
    return this.breakerOf(offer)?.obstacle;
  }

  /** Starts the probes of half-open offers. The returned function ends probes that had no result. */
  begin(offers: readonly Offer[]): () => void {
    const ends = offers.map((offer) => this.breakerOf(offer)?.begin());
    return () => ends.forEach((end) => end?.());
  }

  failed(offer: Offer, failure: BreakerFailure): void {
    // A quota applies to every zone, and slowness usually to the whole cloud. A success in another zone closes that
    // zone's breaker.
    const isEverywhere = failure.cause === 'quota' || failure.cause === 'slow';
    const zones = isEverywhere && this.zones.length > 0 ? this.zones : [offer.zone];
    for (const zone of zones) this.breaker({ ...offer, zone }).failed(failure);
  }

  /**
   * Records that a node has lost its instance for `reason`, at a time in milliseconds since the epoch. `nodesOf` counts
   * the nodes of the offer.
   */
  interrupted(offer: Offer, reason: string, at: number, nodesOf: () => number): void {
    const { clock } = this.context;
    // Counting the nodes takes a while, and many are lost together.
    const isAvoided = this.breakerOf(offer)?.state === 'open';
    const found = this.interruptions.record(this.keyOf(offer), at, clock.now(), isAvoided ? () => Infinity : nodesOf);
    if (found === undefined) return;
    this.failed(offer, {
      cause: 'interrupted',
      reason: `${found}, the last one because ${reason}`,
      startedAt: clock.monotonic(),
      isCertain: true,
    });
  }

  /** Returns true if both are the same offer of this pool. */
  isSame(a: Offer, b: Offer): boolean {
    return this.keyOf(a) === this.keyOf(b);
  }

  /** Records the progress of a launch. A late one (`isLate`) does not prove that a slow offer has recovered. */
  succeeded(offer: Offer, evidence: LaunchEvidence, startedAt: number, isLate = false): void {
    const breaker = this.breaker(offer);
    if (!isLate || breaker.obstacle?.cause !== 'slow') {
      breaker.succeeded(evidence, startedAt);
      return;
    }
    const seconds = Math.round((this.context.clock.monotonic() - startedAt) / 1000);
    breaker.failed({ cause: 'slow', reason: `a node was ready only after ${seconds} s`, startedAt });
  }

  /** Makes the next probe of full offers due at once: the cloud may have capacity for one more instance now. */
  capacityFreed(): void {
    for (const { breaker } of this.known.values()) {
      const cause = breaker.obstacle?.cause;
      if (cause === 'quota' || cause === 'capacity') breaker.probeNow();
    }
  }

  /** Returns the reason why the cloud rejects the configuration of one of the labels, or undefined. */
  rejection(labels: readonly string[]): string | undefined {
    const reasons = (this.zones.length > 0 ? this.zones : [undefined]).map((zone) => {
      for (const label of labels) {
        const obstacles = this.offersOf(label, zone).map((offer) => this.obstacleOf(offer));
        const rejected = obstacles.every((each) => each !== undefined && this.isRejection(each));
        const where = zone === undefined ? '' : ` in zone ${zone}`;
        if (rejected) return `label ${label} cannot be served${where}: ${obstacles[0]?.reason ?? ''}`;
      }
      return undefined;
    });
    return reasons.includes(undefined) ? undefined : reasons[0];
  }

  /** Returns true for a rejected configuration, and for a refusal that has persisted for minutes. */
  private isRejection({ cause, state, since, times }: BreakerObstacle): boolean {
    if (state !== 'open') return false;
    if (cause === 'configuration') return true;
    return cause === 'refused' && times >= PERSISTENT_REFUSALS && this.context.clock.now() - since >= PERSISTENT_MS;
  }

  /** Returns the labels of the pool for which no offer admits a launch at the moment. */
  closedLabels(): string[] {
    return this.labelsWithout((offer) => !this.isClosed(offer));
  }

  /** True if every offer of every label has an obstacle. */
  get isObstructed(): boolean {
    const { size } = this.pool.labels;
    return size > 0 && this.labelsWithout((offer) => this.obstacleOf(offer) === undefined).length === size;
  }

  /** Returns the labels without an offer for which `isUsable` returns true. */
  private labelsWithout(isUsable: (offer: Offer) => boolean): string[] {
    const zones = this.zones.length > 0 ? this.zones : [undefined];
    return [...this.pool.labels.keys()].filter((label) =>
      zones.every((zone) => !this.offersOf(label, zone).some(isUsable)),
    );
  }

  /** Returns the health of every offer that was used or has failed since the start. */
  health(): OfferHealth[] {
    return Array.from(this.known.values(), (known) => this.healthOf(known));
  }

  /** Returns the health of the offers that have an obstacle. Costs little if there are none. */
  obstructed(): OfferHealth[] {
    const found: OfferHealth[] = [];
    this.known.forEach((known) => {
      if (known.breaker.obstacle !== undefined) found.push(this.healthOf(known));
    });
    return found;
  }

  private healthOf({ offer, breaker }: KnownOffer): OfferHealth {
    return {
      ...offer,
      pool: this.pool.name,
      name: nameOf(offer),
      state: breaker.state,
      failures: breaker.failuresInRow,
      obstacle: breaker.obstacle,
    };
  }

  /** Chooses one of the zones in which the labels' first usable offers come first, at random. */
  private choose(
    labels: readonly string[],
    zones: readonly (string | undefined)[],
    skip: number,
    isUsable: (offer: Offer) => boolean,
  ): Pick<OfferPlan, 'zone' | 'offers'> | undefined {
    let best: Pick<OfferPlan, 'zone' | 'offers'>[] = [];
    let lowest = Infinity;
    for (const zone of zones) {
      const offers: Offer[] = [];
      let cost = 0;
      for (const label of labels) {
        const choice = this.usable(label, zone, skip, isUsable);
        if (choice === undefined) break;
        offers.push(choice.offer);
        cost += choice.rank;
      }
      if (offers.length < labels.length) continue;
      if (cost < lowest) best = [];
      if (cost <= lowest) best.push({ zone, offers });
      lowest = Math.min(cost, lowest);
    }
    return best[Math.floor(this.context.random.next() * best.length)];
  }

  private usable(
    label: string,
    zone: string | undefined,
    skip: number,
    isUsable: (offer: Offer) => boolean,
  ): { offer: Offer; rank: number } | undefined {
    let usable: { offer: Offer; rank: number } | undefined;
    let passed = 0;
    const types = machineTypesOf(this.pool.labels.get(label));
    for (let rank = 0; rank < types.length; rank += 1) {
      const offer = offerOf(label, zone, types[rank]);
      if (!isUsable(offer)) continue;
      usable = { offer, rank };
      if (passed === skip) break;
      passed += 1;
    }
    return usable;
  }

  /** Returns true if no launch is admitted. Slow offers of a label are probed by one launch at a time. */
  private isClosed(offer: Offer): boolean {
    const breaker = this.breakerOf(offer);
    if (breaker === undefined || !breaker.admits) return breaker !== undefined;
    if (breaker.obstacle?.cause !== 'slow') return false;
    const others = [...this.known.values()].filter((each) => each.offer.label === offer.label);
    return others.some((each) => each.breaker.isProbing && each.breaker.obstacle?.cause === 'slow');
  }

  private isUsableAnyway(offer: Offer): boolean {
    return this.isKnown(offer.label, offer.machineType) && USABLE_ANYWAY.has(this.obstacleOf(offer)?.cause);
  }

  /** Describes the offer whose probe is due first. */
  private blocked(offers: readonly Offer[]): BlockedOffer {
    let first: { readonly offer: Offer; readonly obstacle: BreakerObstacle } | undefined;
    for (const offer of offers) {
      const obstacle = this.obstacleOf(offer);
      if (obstacle === undefined) continue;
      const isSooner = (obstacle.nextProbe ?? 0) < (first?.obstacle.nextProbe ?? Infinity);
      if (first === undefined || isSooner) first = { offer, obstacle };
    }
    if (first === undefined) return { cause: 'unreachable', reason: 'its machine types are not known yet' };
    return { cause: first.obstacle.cause, reason: describeObstacle(nameOf(first.offer), first.obstacle) };
  }

  private offersOf(label: string, zone: string | undefined): Offer[] {
    return machineTypesOf(this.pool.labels.get(label)).map((machineType) => offerOf(label, zone, machineType));
  }

  /** Returns undefined for a zone that the pool cannot choose; only the cloud places nodes there. */
  private knownZone(zone: string | undefined): string | undefined {
    return zone !== undefined && this.zones.includes(zone) ? zone : undefined;
  }

  private keyOf({ label, zone, machineType }: Offer): string {
    return JSON.stringify([label, this.knownZone(zone) ?? '', machineType ?? '']);
  }

  private breakerOf(offer: Offer): CircuitBreaker | undefined {
    return this.known.get(this.keyOf(offer))?.breaker;
  }

  private breaker(offer: Offer): CircuitBreaker {
    const key = this.keyOf(offer);
    let known = this.known.get(key);
    if (known === undefined) {
      const breaker = new CircuitBreaker({ ...this.context, onChange: () => this.changed(key) });
      known = { offer: { ...offer, zone: this.knownZone(offer.zone) }, breaker, reported: 'closed' };
      this.known.set(key, known);
      this.report(known, 'closed');
    }
    return known.breaker;
  }

  private changed(key: string): void {
    const known = this.known.get(key);
    if (known === undefined) return;
    const { offer, breaker } = known;
    if (known.reported !== breaker.state) {
      known.reported = breaker.state;
      this.report(known, breaker.state);
      this.tell(offer, breaker);
    }
    this.onChange();
  }

  private tell(offer: Offer, { state, obstacle }: CircuitBreaker): void {
    const { log, decisions, metrics } = this.context;
    const { provider, pool } = this;
    const { label, zone, machineType } = offer;
    const by = `${provider}/${pool.name}`;
    metrics.count(BREAKER_TRANSITIONS, { ...this.labelsOf(offer), state, cause: obstacle?.cause ?? '' });
    const fields = { provider, pool: pool.name, label, zone, machine_type: machineType };
    if (obstacle === undefined) {
      log.info('An offer is in service again', fields);
      decisions.record('label', label, by, 'in service again', nameOf(offer));
      return;
    }
    const { cause, reason, nextProbe } = obstacle;
    decisions.record('label', label, by, `breaker ${state}`, describeObstacle(nameOf(offer), obstacle));
    if (state === 'half-open') log.info('The next launch probes an offer', { ...fields, cause });
    else {
      const retryInMs = nextProbe === undefined ? undefined : Math.round(nextProbe - this.context.clock.now());
      log.warn('An offer is out of service', { ...fields, cause, reason, retry_in_ms: retryInMs });
    }
  }

  private report({ offer }: KnownOffer, state: BreakerState | undefined): void {
    const value = state === undefined ? undefined : STATE_VALUES[state];
    this.context.metrics.set(BREAKER_STATES, this.labelsOf(offer), value);
  }

  private labelsOf({ label, zone = '', machineType = '' }: Offer): OfferLabels {
    return { provider: this.provider, pool: this.pool.name, label, zone, machine_type: machineType };
  }

  private stop(): void {
    for (const known of this.known.values()) this.forget(known);
  }

  private forget(known: KnownOffer): void {
    known.breaker.stop();
    this.report(known, undefined);
  }
}

type OfferLabels = Readonly<Record<'provider' | 'pool' | 'label' | 'zone' | 'machine_type', string>>;

function offerOf(label: string, zone: string | undefined, machineType: string | undefined): Offer {
  return { label, zone, machineType };
}

const NO_TYPES: readonly (string | undefined)[] = [undefined];

/** Returns the label's machine types in order of preference; a single undefined element if the label names none. */
export function machineTypesOf(label: LabelConfig | undefined): readonly (string | undefined)[] {
  const types = label?.machineTypes;
  return types === undefined || types.length === 0 ? NO_TYPES : types;
}

/** Returns the offer in words: `label large, machine type m1.large, zone az2`. */
export function nameOf({ label, zone, machineType }: Offer): string {
  let name = `label ${label}`;
  if (machineType !== undefined) name += `, machine type ${machineType}`;
  if (zone !== undefined) name += `, zone ${zone}`;
  return name;
}
