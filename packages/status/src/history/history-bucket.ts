/** The values of one step of the history. */

import type { GroupCost } from '../metrics/cost-meter.js';
import { Distribution, type DistributionJson } from './distribution.js';

/** Limits of the labels and providers that are counted separately in one step. */
const MAX_LABELS = 500;
const MAX_PROVIDERS = 200;

/** Number of requests that ended, by result. */
export interface EndedRequests {
  fulfilled: number;
  failed: number;
  cancelled: number;
}

export interface LabelValues extends EndedRequests {
  /** Requests that waited at the end of the step. */
  waiting: number;
  /** Time from the creation of fulfilled requests to their fulfilment. */
  readonly toNode: Distribution;
}

export interface ProviderValues {
  /** Instances at the end of the step, and their limit; null if there is none. */
  used: number;
  limit: number | null;
  /** Number of launch attempts that ended, and of those that failed. */
  launches: number;
  failures: number;
  calls: number;
  failedCalls: number;
  throttled: number;
  readonly latency: Distribution;
  readonly toNode: Distribution;
}

/** The cost of a group in one step. */
export type StepCost = Omit<GroupCost, 'perHour'>;

export class HistoryBucket implements EndedRequests {
  /** Numbers of nodes by state at the end of the step. */
  nodes: Readonly<Record<string, number>> = {};
  waiting = 0;
  fulfilled = 0;
  failed = 0;
  cancelled = 0;
  launches = 0;
  failures = 0;
  readonly toNode: Distribution = new Distribution();
  /** Costs of the step, the greatest first. */
  costs: readonly StepCost[] = [];
  readonly labels = new Map<string, LabelValues>();
  readonly providers = new Map<string, ProviderValues>();

  /** `start`: milliseconds since the epoch. */
  constructor(readonly start: number) {}

  /** Returns the values of a label; values of labels beyond the limit are discarded. */
  label(name: string): LabelValues {
    let values = this.labels.get(name);
    if (values === undefined) {
      values = { waiting: 0, fulfilled: 0, failed: 0, cancelled: 0, toNode: new Distribution() };
      if (this.labels.size < MAX_LABELS) this.labels.set(name, values);
    }
    return values;
  }

  /** Returns the values of a provider; values of providers beyond the limit are discarded. */
  provider(name: string): ProviderValues {
    let values = this.providers.get(name);
    if (values === undefined) {
      const none = { used: 0, limit: null, launches: 0, failures: 0, calls: 0, failedCalls: 0, throttled: 0 };
      values = { ...none, latency: new Distribution(), toNode: new Distribution() };
      if (this.providers.size < MAX_PROVIDERS) this.providers.set(name, values);
    }
    return values;
  }

  toJSON(): object {
    const { labels, providers, costs, ...values } = this;
    const ofStep = costs.length === 0 ? {} : { costs };
    return { ...values, ...ofStep, labels: Object.fromEntries(labels), providers: Object.fromEntries(providers) };
  }

  /** Returns the bucket of stored JSON; undefined if the JSON is invalid. */
  static from(json: unknown): HistoryBucket | undefined {
    if (!isObject(json) || typeof json['start'] !== 'number') return undefined;
    const bucket = new HistoryBucket(json['start']);
    bucket.nodes = numbersOf(json['nodes']);
    for (const key of ['waiting', 'fulfilled', 'failed', 'cancelled', 'launches', 'failures'] as const) {
      bucket[key] = numberOf(json[key]);
    }
    bucket.toNode.merge(Distribution.from(distributionOf(json['toNode'])));
    bucket.costs = costsIn(json['costs']);
    for (const [name, values] of entriesOf(json['labels'])) {
      const label = bucket.label(name);
      for (const key of ['waiting', 'fulfilled', 'failed', 'cancelled'] as const) label[key] = numberOf(values[key]);
      label.toNode.merge(Distribution.from(distributionOf(values['toNode'])));
    }
    for (const [name, values] of entriesOf(json['providers'])) {
      const provider = bucket.provider(name);
      for (const key of ['used', 'launches', 'failures', 'calls', 'failedCalls', 'throttled'] as const) {
        provider[key] = numberOf(values[key]);
      }
      provider.limit = typeof values['limit'] === 'number' ? values['limit'] : null;
      provider.latency.merge(Distribution.from(distributionOf(values['latency'])));
      provider.toNode.merge(Distribution.from(distributionOf(values['toNode'])));
    }
    return bucket;
  }
}

type Unchecked = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is Unchecked {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Limit of the groups whose costs are counted separately in one step. */
const MAX_COSTS = 500;

/** Adds up the costs of each group. Returns the greatest ones. */
export function greatestCosts(costs: readonly StepCost[]): readonly StepCost[] {
  const sums = new Map<string, StepCost>();
  for (const { provider, label, tenant, project, use, currency, amount } of costs) {
    if (amount <= 0) continue;
    const group = { provider, label, tenant, project, use, currency };
    const key = JSON.stringify(group);
    sums.set(key, { ...group, amount: amount + (sums.get(key)?.amount ?? 0) });
  }
  return [...sums.values()].sort((a, b) => b.amount - a.amount).slice(0, MAX_COSTS);
}

function costsIn(value: unknown): readonly StepCost[] {
  return (Array.isArray(value) ? (value as unknown[]) : []).flatMap((each): StepCost[] => {
    if (!isObject(each)) return [];
    const { use, amount } = each;
    if (typeof amount !== 'number' || (use !== 'in-use' && use !== 'idle' && use !== 'overhead')) return [];
    const text = (key: string): string => (typeof each[key] === 'string' ? each[key] : '');
    const [provider, label, tenant] = [text('provider'), text('label'), text('tenant')];
    return [{ provider, label, tenant, project: text('project'), use, currency: text('currency'), amount }];
  });
}

function entriesOf(value: unknown): [string, Unchecked][] {
  return Object.entries(isObject(value) ? value : {}).flatMap(([name, each]) => (isObject(each) ? [[name, each]] : []));
}

function numberOf(value: unknown): number {
  return typeof value === 'number' ? value : 0;
}

function numbersOf(value: unknown): Record<string, number> {
  return Object.fromEntries(Object.entries(isObject(value) ? value : {}).map(([name, each]) => [name, numberOf(each)]));
}

function distributionOf(value: unknown): Partial<DistributionJson> {
  return isObject(value) ? value : {};
}
