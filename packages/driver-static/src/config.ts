/** The configuration of a provider of this driver: the machines of its pools. `schema.ts` documents the keys. */

import {
  booleanAt,
  entriesAt,
  loadCommonProvider,
  millisecondsAt,
  numberAt,
  stringAt,
  stringsAt,
  type Connection,
  type Entry,
  type JsonObject,
  type LabelConfig,
  type PoolConfig,
  type ProviderConfig,
  type ProviderConfigContext,
} from '@nodepool/core';

/** Defaults of the Python Nodepool. */
export const DEFAULTS = {
  username: 'zuul',
  timeoutSeconds: 5,
  connectionType: 'ssh',
  pythonPath: 'auto',
  slots: 1,
} as const;

const WINRM_PORT = 5986;
const SSH_PORT = 22;

export interface StaticMachine {
  readonly name: string;
  readonly labels: readonly string[];
  readonly connection: Connection & { readonly port: number };
  /** Host keys that the machine must have. It may have additional ones. */
  readonly hostKeys: readonly string[];
  readonly hostKeyChecking: boolean;
  readonly timeoutMs: number;
  readonly slots: number;
}

export interface StaticPool extends PoolConfig {
  readonly machines: readonly StaticMachine[];
}

export interface StaticProviderConfig extends ProviderConfig {
  readonly pools: ReadonlyMap<string, StaticPool>;
}

export function loadProvider(section: JsonObject, context: ProviderConfigContext): StaticProviderConfig {
  /** Positions of machines by identity. */
  const known = new Map<string, string>();
  const common = loadCommonProvider<LabelConfig, StaticPool>(section, context, {
    defaults: { bootTimeoutSeconds: DEFAULTS.timeoutSeconds, rateUnit: 'calls-per-second' },
    loadLabel: (label) => label,
    loadPool: (pool, source) => {
      const machines = entriesAt(source.section, 'nodes').map((entry) => {
        const path = [...source.path, 'nodes', entry.index];
        const machine = loadMachine(entry);
        checkLabels(machine, path, context);
        checkIdentity(machine, path, known, context);
        return machine;
      });
      return { ...pool, machines, labels: labelsOf(machines) };
    },
  });
  return { ...common, createsNodes: false };
}

function loadMachine({ name, section }: Entry): StaticMachine {
  const type = stringAt(section, 'connection-type') ?? DEFAULTS.connectionType;
  const port = numberAt(section, 'connection-port') ?? numberAt(section, 'ssh-port');
  return {
    name,
    labels: [...new Set(stringsAt(section, 'labels') ?? stringAt(section, 'labels')?.split(/\s+/).filter(Boolean))],
    connection: {
      type,
      port: port ?? (type === 'winrm' ? WINRM_PORT : SSH_PORT),
      username: stringAt(section, 'username') ?? DEFAULTS.username,
      pythonPath: stringAt(section, 'python-path') ?? DEFAULTS.pythonPath,
      shellType: stringAt(section, 'shell-type') ?? null,
    },
    hostKeys: stringsAt(section, 'host-key') ?? [stringAt(section, 'host-key') ?? []].flat(),
    hostKeyChecking: booleanAt(section, 'host-key-checking') ?? true,
    timeoutMs: millisecondsAt(section, 'timeout') ?? DEFAULTS.timeoutSeconds * 1000,
    slots: numberAt(section, 'max-parallel-jobs') ?? DEFAULTS.slots,
  };
}

function checkLabels(
  { labels }: StaticMachine,
  path: readonly (string | number)[],
  context: ProviderConfigContext,
): void {
  for (const label of labels) {
    if (context.labels.has(label)) continue;
    context.problem([...path, 'labels'], {
      expected: 'names of labels in the top-level `labels`',
      hint: `add ${JSON.stringify(label)} there`,
    });
  }
}

function checkIdentity(
  { name, connection: { username, port } }: StaticMachine,
  path: readonly (string | number)[],
  known: Map<string, string>,
  context: ProviderConfigContext,
): void {
  const identity = JSON.stringify([name, username, port]);
  const before = known.get(identity);
  if (before === undefined) known.set(identity, path.join('.'));
  else {
    context.problem([...path, 'name'], {
      expected: 'a name, user and port that no other machine has',
      hint: `${before} has ${name}, ${username}, ${port} already; \`max-parallel-jobs\` lets a machine serve as several nodes`,
    });
  }
}

/** Returns the labels of the machines. A node has the login of its machine; the login of a label is unused. */
function labelsOf(machines: readonly StaticMachine[]): ReadonlyMap<string, LabelConfig> {
  const labels = new Map<string, LabelConfig>();
  for (const { labels: names, connection, hostKeyChecking } of machines) {
    for (const name of names) {
      const image = { kind: 'cloud-image', name: '' } as const;
      if (!labels.has(name)) labels.set(name, { name, image, connection, hostKeyChecking, consoleLog: false });
    }
  }
  return labels;
}
