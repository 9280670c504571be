/**
 * The demand for nodes of one label, counted by the launcher that is elected for the label: its history in ZooKeeper,
 * its model, and the present quarter of an hour. Another launcher continues where this one ends.
 */

import { MIN_READY_REQUESTOR } from '@nodepool/core';
import { QUARTER_MS, type ReadyForecast } from '@nodepool/config';
import type { DemandDay, RequestEntry, Store } from '@nodepool/store';
import type { CallOptions } from '@nodepool/zookeeper';
import { DemandCounter, quarterOf, type Quarter } from './demand-counter.js';
import { DemandModel } from './demand-model.js';
import { decodeDemand, encodeDemand, QUARTERS_PER_DAY } from './demand-record.js';

/** Days of demand that are kept in ZooKeeper. */
const KEPT_DAYS = 28;
/** Boot time (ms) until a node was seen, and the limits of boot times. */
const FIRST_BOOT_MS = 120_000;
const BOOT_LIMITS_MS = { shortest: 1000, longest: 3_600_000 } as const;
/** Weight of a new boot time in the mean. */
const BOOT_WEIGHT = 0.1;
/** Sequence numbers of requests start again after this number. */
const SEQUENCES = 2 ** 31;

/** The quarters of a day, and the version of its znode. */
interface Day {
  readonly day: number;
  version: number | undefined;
  quarters: Quarter[];
}

export class LabelDemand {
  private readonly model = new DemandModel();
  private readonly counter: DemandCounter;
  private today: Day;
  /** Number of the present quarter. */
  private index: number;
  private lastAt = 0;
  private bootMs: number | undefined;
  private lastRequest: number | undefined;
  /** True once the old days are deleted. */
  private isCleaned = false;

  private constructor(
    private readonly label: string,
    now: number,
  ) {
    this.index = quarterOf(now);
    this.counter = new DemandCounter(this.index);
    this.today = { day: dayOf(this.index), version: undefined, quarters: [] };
  }

  /** Returns the demand of the days, with the requests that were created after the last counted one. */
  static of(label: string, days: readonly DemandDay[], requests: Iterable<RequestEntry>, now: number): LabelDemand {
    const demand = new LabelDemand(label, now);
    for (const day of days) demand.restore(day);
    const open = [...requests].sort((a, b) => sequenceOf(a.id) - sequenceOf(b.id));
    // Without a history, the open requests are older than it.
    demand.lastRequest ??= open.reduce((last, { id }) => Math.max(last, sequenceOf(id)), -1);
    for (const entry of open) demand.requested(entry, now);
    return demand;
  }

  /** Counts a new request, unless it is counted already. */
  requested({ id, request }: RequestEntry, now: number): void {
    const sequence = sequenceOf(id);
    if (!isLater(sequence, this.lastRequest)) return;
    this.lastRequest = sequence;
    if (request.requestor === MIN_READY_REQUESTOR) return;
    const created = request.created_time === null ? now : request.created_time * 1000;
    this.lastAt = Math.max(this.lastAt, this.index * QUARTER_MS, Math.min(created, now));
    for (const label of request.node_types) if (label === this.label) this.counter.add(this.lastAt, this.leadMs);
  }

  /** Counts the boot time of a node of the label. */
  booted(ms: number): void {
    const bounded = Math.min(BOOT_LIMITS_MS.longest, Math.max(BOOT_LIMITS_MS.shortest, ms));
    this.bootMs = this.bootMs === undefined ? bounded : this.bootMs + BOOT_WEIGHT * (bounded - this.bootMs);
  }

  /** Ends the quarters before `now`. Returns the forecast for the present one and those within the boot time. */
  forecast(now: number, servedAtOnce: number): ReadyForecast {
    const index = quarterOf(now);
    if (index > this.index) {
      this.model.add(this.endQuarter(index));
      if (index > this.index + 1) this.model.add({ index: index - 1, demand: 0, gains: [] });
      this.index = index;
    }
    const length = 2 + Math.floor(this.leadMs / QUARTER_MS);
    const indexes = Array.from({ length }, (_, offset) => this.index + offset);
    return { from: this.index * QUARTER_MS, counts: this.model.sizes(indexes, servedAtOnce), leadMs: this.leadMs };
  }

  /**
   * Writes the day, and deletes old ones. Resolves with the numbers of the deleted days. Rejects with
   * `LostOwnershipError` if another launcher counts.
   */
  async save(store: Pick<Store, 'demand'>, options: CallOptions): Promise<readonly number[]> {
    const { label, today, bootMs, lastRequest, counter } = this;
    const { quarter } = counter;
    const quarters =
      quarter.demand > 0 && dayOf(quarter.index) === today.day ? [...today.quarters, quarter] : today.quarters;
    const data = encodeDemand({ quarters, bootMs, lastRequest });
    today.version = await store.demand.write(label, { day: today.day, version: today.version, data }, options);
    const day = dayOf(this.index);
    if (day !== today.day) this.today = { day, version: undefined, quarters: [] };
    else if (this.isCleaned) return [];
    this.isCleaned = true;
    return store.demand.removeBefore(label, day - KEPT_DAYS, options);
  }

  private get leadMs(): number {
    return this.bootMs ?? FIRST_BOOT_MS;
  }

  /** Ends the present quarter. Its day is written before the first quarter of another day ends. */
  private endQuarter(next: number): Quarter {
    const quarter = this.counter.begin(next);
    if (quarter.demand > 0 && dayOf(quarter.index) === this.today.day) this.today.quarters.push(quarter);
    return quarter;
  }

  private restore({ day, version, data }: DemandDay): void {
    const { quarters, bootMs, lastRequest } = decodeDemand(data);
    for (const quarter of quarters) {
      if (quarter.index < this.index) this.model.add(quarter);
      else this.counter.resume(quarter);
    }
    this.bootMs = bootMs ?? this.bootMs;
    this.lastRequest = lastRequest ?? this.lastRequest;
    if (day === this.today.day)
      this.today = { day, version, quarters: quarters.filter(({ index }) => index < this.index) };
  }
}

function dayOf(index: number): number {
  return Math.floor(index / QUARTERS_PER_DAY);
}

/** Returns the sequence number at the end of a request's id. */
function sequenceOf(id: string): number {
  return Number(/\d+$/u.exec(id)?.[0] ?? 0);
}

function isLater(sequence: number, last: number | undefined): boolean {
  if (last === undefined) return true;
  const ahead = (sequence - last + SEQUENCES) % SEQUENCES;
  return ahead > 0 && ahead < SEQUENCES / 2;
}
