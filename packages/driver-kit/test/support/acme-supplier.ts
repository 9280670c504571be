/** A driver that declares existing machines, with its fixture for the contract tests. */

import { join } from 'node:path';
import {
  ConfigurationError,
  entriesAt,
  loadCommonProvider,
  providerSchema,
  type Call,
  type Driver,
  type JsonObject,
  type Provider,
  type ProviderConfig,
  type SuppliedMachine,
} from '@nodepool/core';
import { simulatedTime, SimulatedLogins, type DriverFixture } from '../../src/index.js';

/** Deviations of a defective driver. */
export interface SupplierChanges {
  readonly config?: Partial<ProviderConfig>;
  readonly machine?: Partial<SuppliedMachine>;
  readonly checkCall?: (call: Call) => Call;
  readonly provider?: Partial<Provider>;
  /** If true, withdraws a machine when its node is deleted. */
  readonly withdraws?: boolean;
}

const section: JsonObject = {
  name: 'acme-1',
  driver: 'acme',
  'max-concurrency': 5,
  priority: 1,
  pools: [
    { name: 'main', 'max-servers': 10, priority: 1, 'node-attributes': { a: 'b' }, labels: [{ name: 'host-1' }] },
  ],
};

const defaults = { bootTimeoutSeconds: 5, rateUnit: 'calls-per-second' } as const;

const schema = providerSchema({
  defaults,
  provider: { without: ['launch-retries', 'launch-timeout', 'boot-timeout', 'rate'] },
  pool: { without: ['host-key-checking', 'use-internal-ip'] },
  label: { without: ['host-key-checking'] },
});

function supplier(changes: SupplierChanges): Driver {
  return {
    name: 'acme',
    schema,
    getProviderConfig: (own, context) => {
      const common = loadCommonProvider(own, context, {
        defaults,
        loadLabel: (label) => label,
        loadPool: (pool) => pool,
      });
      const connection = { type: 'ssh', port: 22, username: 'zuul', pythonPath: null, shellType: null };
      const pools = entriesAt(own, 'pools').map(({ name, section: pool }) => {
        const image = { kind: 'cloud-image', name: '' } as const;
        const labels = entriesAt(pool, 'labels').map((label) => [
          label.name,
          { name: label.name, image, connection, hostKeyChecking: true, consoleLog: false },
        ] as const); // prettier-ignore
        return [name, { ...common.pools.get(name), labels: new Map(labels) }] as const;
      });
      return { ...common, createsNodes: false, pools: new Map(pools) as ProviderConfig['pools'], ...changes.config };
    },
    getProvider: (config) => providerOf(config, changes),
  };
}

function providerOf(config: ProviderConfig, changes: SupplierChanges): Provider {
  let declare: (machines: readonly SuppliedMachine[]) => void = () => undefined;
  return {
    config,
    start: async ({ nodeSupply, loginScan }) => {
      if (nodeSupply === undefined || loginScan === undefined) return;
      declare = (machines) => nodeSupply.apply(machines);
      const machines = [...config.pools.values()].flatMap((pool) =>
        [...pool.labels.values()].map(({ name, connection }): SuppliedMachine => {
          const check = async (call: Call): Promise<{ hostKeys: readonly string[] }> => {
            const login = { host: name, port: 22, connectionType: 'ssh' };
            return { hostKeys: await loginScan(login, changes.checkCall?.(call) ?? call) };
          };
          const settings = { ...connection, port: 22 };
          return {
            pool: pool.name,
            hostname: name,
            connection: settings,
            labels: [name],
            slots: 1,
            check,
            ...changes.machine,
          };
        }),
      );
      declare(machines);
    },
    stop: () => undefined,
    join: () => Promise.resolve(),
    labelReady: () => ({ ready: true }),
    getRequestHandler: () => ({
      launch: () => Promise.reject(new ConfigurationError('it creates nothing')),
      launchesComplete: () => true,
    }),
    cleanupNode: async () => {
      if (changes.withdraws === true) declare([]);
    },
    waitForNodeCleanup: () => Promise.resolve(),
    cleanupLeakedResources: () => Promise.resolve(),
    listNodes: () => Promise.resolve([]),
    ...changes.provider,
  };
}

export function supplierFixture(changes: SupplierChanges = {}): DriverFixture {
  return {
    name: 'acme, with machines that exist',
    packageFolder: join(__dirname, 'acme'),
    can: [],
    supplies: true,
    configuration: { accepted: [section], refused: [] },
    open() {
      const time = simulatedTime();
      const logins = new SimulatedLogins(time.clock);
      return { time, section, logins, makeDriver: () => supplier(changes), close: () => undefined };
    },
  };
}
