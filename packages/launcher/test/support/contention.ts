/** A site with too little capacity, and tenants whose requestors keep it in contention. */

import type { FairShares } from '@nodepool/config';
import type { RunningLauncher, World } from './world.js';

export function shares(weights: Readonly<Record<string, number>>, more: Partial<FairShares> = {}): FairShares {
  const tenants = new Map(
    Object.entries(weights).map(([tenant, share]) => [tenant, { share, projects: new Map<string, number>() }]),
  );
  return { halfLifeMs: 600_000, defaultShare: 1, tenants, ...more };
}

/** Time between two looks at the records, milliseconds. */
const STEP_MS = 5000;

/** The demand of a tenant: it always has `backlog` waiting requests. */
export interface TenantDemand {
  readonly tenant: string;
  readonly labels: readonly string[];
  readonly backlog: number;
  /** Seconds for which the nodes of a request are used. */
  readonly hold: () => number;
  readonly project?: () => string;
  readonly priority?: () => number;
}

/** Sums of used node seconds by a key. */
export type NodeSeconds = Map<string, number>;

export class Contention {
  readonly byTenant: NodeSeconds = new Map();
  readonly byProject: NodeSeconds = new Map();
  /** Longest wait of a fulfilled request (s), by tenant. */
  readonly longestWait = new Map<string, number>();
  /** Longest time (s) in which a tenant with waiting requests got nothing. */
  readonly longestDrought = new Map<string, number>();
  /** Time (ms) at which a tenant last got something. */
  private readonly served = new Map<string, number>();
  /** Node seconds, whether a tenant used the node or not. */
  nodeSeconds = 0;
  private readonly waiting = new Map<string, { readonly demand: TenantDemand; readonly since: number }>();

  constructor(
    private readonly world: World,
    /** A launcher, whose records are measured. */
    private readonly observed: Pick<RunningLauncher, 'store'>,
  ) {}

  /** Keeps the demands for a time, in seconds. Measures that time only. */
  async run(demands: readonly TenantDemand[], seconds: number): Promise<void> {
    const { world } = this;
    for (const sums of [this.byTenant, this.byProject, this.longestWait, this.longestDrought]) sums.clear();
    this.nodeSeconds = 0;
    const { requests } = this.observed.store;
    const end = world.clock.now() + seconds * 1000;
    let last = world.clock.now();
    while (world.clock.now() < end) {
      await this.fill(demands);
      await world.clock.advance(STEP_MS);
      this.measure((world.clock.now() - last) / 1000);
      last = world.clock.now();
      for (const [id, { demand, since }] of [...this.waiting]) {
        if (requests.get(id)?.request.state !== 'fulfilled') continue;
        const waited = (world.clock.now() - since) / 1000;
        this.longestWait.set(demand.tenant, Math.max(waited, this.longestWait.get(demand.tenant) ?? 0));
        this.waiting.delete(id);
        this.served.set(demand.tenant, world.clock.now());
        const taken = await world.during(world.requestor.take(id));
        world.clock.schedule(demand.hold() * 1000, () => void world.requestor.giveBack(taken));
      }
    }
    for (const [, { since, demand }] of this.waiting) {
      const waited = (world.clock.now() - since) / 1000;
      this.longestWait.set(demand.tenant, Math.max(waited, this.longestWait.get(demand.tenant) ?? 0));
    }
  }

  /** Returns the part of each tenant in the sum of all. */
  parts(sums: NodeSeconds = this.byTenant): Readonly<Record<string, number>> {
    const total = [...sums.values()].reduce((sum, each) => sum + each, 0);
    return Object.fromEntries([...sums].map(([key, sum]) => [key, sum / total]));
  }

  private async fill(demands: readonly TenantDemand[]): Promise<void> {
    for (const demand of demands) {
      const missing = demand.backlog - [...this.waiting.values()].filter((each) => each.demand === demand).length;
      for (let count = 0; count < missing; count += 1) {
        const project = demand.project?.();
        const since = this.world.clock.now();
        const id = await this.world.submit(demand.labels, {
          tenant: demand.tenant,
          priority: demand.priority?.() ?? 200,
          ...(project === undefined ? {} : { data: { project } }),
        });
        this.waiting.set(id, { demand, since });
      }
    }
  }

  private measure(seconds: number): void {
    for (const { demand, since } of this.waiting.values()) {
      const { tenant } = demand;
      const drought = (this.world.clock.now() - Math.max(since, this.served.get(tenant) ?? 0)) / 1000;
      this.longestDrought.set(tenant, Math.max(drought, this.longestDrought.get(tenant) ?? 0));
    }
    for (const { node } of this.observed.store.nodes.all()) {
      this.nodeSeconds += seconds;
      const { tenant_name: tenant, project } = node;
      if (tenant !== null) this.byTenant.set(tenant, (this.byTenant.get(tenant) ?? 0) + seconds);
      if (typeof project === 'string') this.byProject.set(project, (this.byProject.get(project) ?? 0) + seconds);
    }
  }
}
