/** The measures of one replay, as plain data. */

import type { DayRequest } from '../day/day.js';
import type { LaunchCount } from '../model/model-cloud.js';
import type { Outcome } from '../model/requestors.js';
import type { NodeLevels, NodeMeter } from './node-meter.js';

/** Requests of one label, or of one provider. A request with several labels counts for each of them. */
export interface RequestMeasures {
  readonly requests: number;
  /** Waits of the fulfilled requests, ascending (ms). */
  readonly waitsMs: readonly number[];
  readonly failed: number;
  /** Requests that their requestors cancelled, as in the journal. */
  readonly cancelled: number;
  /** Requests without an answer at the end of the replay. */
  readonly unanswered: number;
}

/** Nodes of one label, pool, provider or tenant. */
export interface NodeMeasures {
  readonly mostNodes: number;
  /** Limit of the number of nodes; null if there is none, or none that is known. */
  readonly limit: number | null;
  /** Part of the time at the limit, 0 to 1. */
  readonly atLimit: number;
  /** Hours of nodes that were ready and not allocated. */
  readonly idleHours: number;
  readonly usedHours: number;
  /** Hours of all nodes, launches and deletions included. */
  readonly nodeHours: number;
}

type ByName<T> = Readonly<Record<string, T>>;

export interface RunMeasures {
  readonly labels: ByName<RequestMeasures & NodeMeasures>;
  readonly providers: ByName<Pick<RequestMeasures, 'waitsMs'> & NodeMeasures & Readonly<LaunchCount>>;
  readonly pools: ByName<NodeMeasures>;
  readonly tenants: ByName<NodeMeasures>;
  /** Number of failed requests by reason. */
  readonly failures: ByName<number>;
  readonly assumptions: readonly string[];
}

class RequestCount {
  readonly waits: number[] = [];
  failed = 0;
  cancelled = 0;
  ended = 0;

  add({ result, waitedMs }: Outcome): void {
    this.ended += 1;
    if (result === 'fulfilled') this.waits.push(waitedMs);
    else this[result] += 1;
  }

  result(requests: number): RequestMeasures {
    const { waits, failed, cancelled, ended } = this;
    return { requests, waitsMs: waits.sort((a, b) => a - b), failed, cancelled, unanswered: requests - ended };
  }
}

export class Measures {
  private readonly byLabel = new Map<string, RequestCount>();
  private readonly byProvider = new Map<string, RequestCount>();
  private readonly failures = new Map<string, number>();

  constructor(
    private readonly meter: NodeMeter,
    private readonly launches: ReadonlyMap<string, LaunchCount>,
  ) {}

  ended(outcome: Outcome): void {
    const { request, provider, result, reasons } = outcome;
    if (request.isInitial) return;
    for (const label of new Set(request.labels)) countOf(this.byLabel, label).add(outcome);
    if (provider !== undefined) countOf(this.byProvider, provider).add(outcome);
    if (result !== 'failed') return;
    const reason = reasons.length === 0 ? 'no pool has its labels' : [...new Set(reasons)].sort().join('; ');
    this.failures.set(reason, (this.failures.get(reason) ?? 0) + 1);
  }

  result(requests: readonly DayRequest[], assumptions: Iterable<string>): RunMeasures {
    const { meter, launches, byLabel, byProvider } = this;
    const created = new Map<string, number>();
    for (const { labels, isInitial } of requests) {
      for (const label of isInitial ? [] : new Set(labels)) created.set(label, (created.get(label) ?? 0) + 1);
    }
    const labels = new Set([...created.keys(), ...meter.levels.label.keys()]);
    const noLaunches: LaunchCount = { started: 0, failed: 0 };
    return {
      labels: byName(labels, (label) => ({
        ...countOf(byLabel, label).result(created.get(label) ?? 0),
        ...this.nodes('label', label),
      })),
      providers: byName(new Set([...launches.keys(), ...meter.levels.provider.keys()]), (provider) => ({
        waitsMs: countOf(byProvider, provider).result(0).waitsMs,
        ...this.nodes('provider', provider),
        ...(launches.get(provider) ?? noLaunches),
      })),
      pools: byName(meter.levels.pool.keys(), (pool) => this.nodes('pool', pool)),
      tenants: byName(meter.levels.tenant.keys(), (tenant) => this.nodes('tenant', tenant)),
      failures: Object.fromEntries(this.failures),
      assumptions: [...assumptions].sort(),
    };
  }

  private nodes(subject: 'label' | 'pool' | 'provider' | 'tenant', name: string): NodeMeasures {
    const levels: NodeLevels | undefined = this.meter.levels[subject].get(name);
    const limit = this.meter.limitOf(subject, name);
    return {
      mostNodes: levels?.all.max ?? 0,
      limit: Number.isFinite(limit) ? limit : null,
      atLimit: levels?.all.shareAtLimit ?? 0,
      idleHours: levels?.idle.hours ?? 0,
      usedHours: levels?.used.hours ?? 0,
      nodeHours: levels?.all.hours ?? 0,
    };
  }
}

function countOf(map: Map<string, RequestCount>, name: string): RequestCount {
  let count = map.get(name);
  if (count === undefined) map.set(name, (count = new RequestCount()));
  return count;
}

function byName<T>(names: Iterable<string>, valueOf: (name: string) => T): Readonly<Record<string, T>> {
  return Object.fromEntries([...names].sort().map((name) => [name, valueOf(name)]));
}
