/** The configuration of a provider of this driver. `schema.ts` documents the keys. */

import {
  booleanAt,
  loadCommonProvider,
  millisecondsAt,
  numberAt,
  stringAt,
  type JsonObject,
  type LabelConfig,
  type LabelSource,
  type PoolConfig,
  type ProviderConfig,
  type ProviderConfigContext,
} from '@nodepool/core';
import { DEFAULTS, PROVIDER_DEFAULTS } from './schema.js';

/** How the backing nodes of a label are divided and retained. */
export interface BackingSettings {
  readonly backingLabel: string;
  readonly slots: number;
  readonly graceMs: number;
  readonly minRetentionMs: number;
  /** `Infinity` for no limit. */
  readonly maxAgeMs: number;
}

export interface MetastaticLabel extends LabelConfig, BackingSettings {
  /** True if the driver checks the login of the backing node before each use; the launcher itself does not. */
  readonly checksLogin: boolean;
}

export type MetastaticProvider = ProviderConfig<MetastaticLabel> & {
  /** Settings by label; pools share the backing nodes of a label. */
  readonly backing: ReadonlyMap<string, BackingSettings>;
};

type Path = readonly (string | number)[];

/** Reads a section that has passed the schema. */
export function loadProvider(section: JsonObject, context: ProviderConfigContext): MetastaticProvider {
  const checks = new SettingsChecks(context);
  const common = loadCommonProvider<MetastaticLabel, PoolConfig<MetastaticLabel>>(section, context, {
    defaults: PROVIDER_DEFAULTS,
    withoutImages: true,
    loadLabel: (label, source) => {
      const loaded = loadLabel(label, source);
      checks.check(loaded, source.path);
      return loaded;
    },
    loadPool: (pool) => pool,
  });
  const labels = [...common.pools.values()].flatMap((pool) => [...pool.labels]);
  // The first pool wins, as in the Python Nodepool; a conflict is a problem of the configuration.
  return { ...common, waitsForOthers: true, backing: new Map(labels.toReversed()) };
}

function loadLabel(label: LabelConfig, { section, poolSection }: LabelSource): MetastaticLabel {
  return {
    ...label,
    hostKeyChecking: false,
    checksLogin: booleanAt(section, 'host-key-checking') ?? booleanAt(poolSection, 'host-key-checking') ?? false,
    backingLabel: stringAt(section, 'backing-label') ?? '',
    slots: numberAt(section, 'max-parallel-jobs') ?? DEFAULTS.slots,
    graceMs: millisecondsAt(section, 'grace-time') ?? DEFAULTS.graceSeconds * 1000,
    minRetentionMs: millisecondsAt(section, 'min-retention-time') ?? DEFAULTS.minRetentionSeconds * 1000,
    maxAgeMs: millisecondsAt(section, 'max-age') ?? Infinity,
  };
}

/** Reports settings that contradict each other. */
class SettingsChecks {
  private readonly byBackingLabel = new Map<string, { readonly label: MetastaticLabel; readonly path: Path }>();
  private readonly byLabel = new Map<string, MetastaticLabel>();

  constructor(private readonly context: ProviderConfigContext) {}

  check(label: MetastaticLabel, path: Path): void {
    const { name, backingLabel, maxAgeMs, minRetentionMs } = label;
    const { context } = this;
    if (!context.labels.has(backingLabel)) {
      context.problem([...path, 'backing-label'], {
        expected: 'the name of a label in the top-level `labels`',
        hint: 'add it there',
      });
    }
    if (backingLabel === name) {
      context.problem([...path, 'backing-label'], { expected: 'another label than the label itself' });
    }
    if (maxAgeMs < minRetentionMs) {
      const expected = '`max-age` to be greater than or equal to `min-retention-time`';
      context.problem([...path, 'max-age'], { expected });
    }
    const known = this.byBackingLabel.get(backingLabel);
    if (known === undefined) this.byBackingLabel.set(backingLabel, { label, path });
    else if (!isSame(known.label, label)) {
      context.problem(path, {
        expected:
          'the same `max-parallel-jobs`, `grace-time`, `min-retention-time` and `max-age` as ' +
          `${known.path.join('.')}, which has the same \`backing-label\``,
      });
    }
    const namesake = this.byLabel.get(name);
    if (namesake === undefined) this.byLabel.set(name, label);
    else if (namesake.backingLabel !== backingLabel) {
      const expected = `${JSON.stringify(namesake.backingLabel)}, as for the same label in another pool`;
      context.problem([...path, 'backing-label'], { expected });
    }
  }
}

function isSame(a: BackingSettings, b: BackingSettings): boolean {
  return (
    a.slots === b.slots && a.graceMs === b.graceMs && a.minRetentionMs === b.minRetentionMs && a.maxAgeMs === b.maxAgeMs
  );
}
