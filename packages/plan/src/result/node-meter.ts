/** Measures the numbers of nodes of a replay: by label, pool, provider and tenant. */

import type { Clock, Node } from '@nodepool/core';
import type { NodepoolConfig } from '@nodepool/config';
import type { NodeEntry, Store } from '@nodepool/store';
import { Level, type Period } from './level.js';

/** All nodes of a subject with a record, those that are ready and not allocated, and those in use. */
export interface NodeLevels {
  readonly all: Level;
  readonly idle: Level;
  readonly used: Level;
}

type Subject = 'label' | 'pool' | 'provider' | 'tenant';

export interface NodeMeterOptions {
  readonly store: Pick<Store, 'nodes'>;
  readonly clock: Clock;
  readonly period: Period;
  readonly config: Pick<NodepoolConfig, 'providers' | 'tenantLimits'>;
  /** Returns the limit of the instances of a provider's cloud; undefined if it is not known. */
  readonly cloudLimit: (provider: string) => number | undefined;
}

export class NodeMeter {
  /** The levels of each kind of subject, by name; pools have the form `provider/pool`. */
  readonly levels: Readonly<Record<Subject, Map<string, NodeLevels>>> = {
    label: new Map(),
    pool: new Map(),
    provider: new Map(),
    tenant: new Map(),
  };

  constructor(private readonly options: NodeMeterOptions) {
    options.store.nodes.onChange(({ before, after }) => this.changed(before, after));
  }

  private changed(before: NodeEntry | undefined, after: NodeEntry | undefined): void {
    const from = before === undefined ? [] : this.levelsOf(before.node);
    const to = after === undefined ? [] : this.levelsOf(after.node);
    for (const level of from) if (!to.includes(level)) level.change(-1);
    for (const level of to) if (!from.includes(level)) level.change(1);
  }

  /** Returns the levels that count the node. */
  private levelsOf(node: Node): readonly Level[] {
    const { provider, pool, type, tenant_name: tenant } = node;
    const use = useOf(node);
    const counted: Level[] = [];
    const count = (subject: Subject, name: string): void => {
      const levels = this.of(subject, name);
      counted.push(levels.all);
      if (use !== 'other') counted.push(levels[use]);
    };
    const [label] = type;
    if (label !== undefined) count('label', label);
    if (provider === null) return counted;
    count('provider', provider);
    if (pool !== null) count('pool', `${provider}/${pool}`);
    if (tenant !== null && node.allocated_to !== null) count('tenant', tenant);
    return counted;
  }

  private of(subject: Subject, name: string): NodeLevels {
    const known = this.levels[subject].get(name);
    if (known !== undefined) return known;
    const { clock, period } = this.options;
    const levels = {
      all: new Level(clock, period, this.limitOf(subject, name)),
      idle: new Level(clock, period),
      used: new Level(clock, period),
    };
    this.levels[subject].set(name, levels);
    return levels;
  }

  /** Returns the limit of the number of nodes; Infinity if there is none, or none that is known. */
  limitOf(subject: Subject, name: string): number {
    const { config, cloudLimit } = this.options;
    if (subject === 'tenant') return config.tenantLimits.get(name)?.['instances'] ?? Infinity;
    if (subject === 'provider') return cloudLimit(name) ?? Infinity;
    if (subject === 'label') return Infinity;
    const slash = name.indexOf('/');
    const pool = config.providers.get(name.slice(0, slash))?.pools.get(name.slice(slash + 1));
    return pool?.maxServers ?? Infinity;
  }
}

function useOf({ state, allocated_to: request }: Node): 'idle' | 'used' | 'other' {
  if (state === 'in-use' || state === 'hold') return 'used';
  if (state !== 'ready') return 'other';
  return request === null ? 'idle' : 'used';
}
