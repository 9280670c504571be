/** The driver's provider with simulated backing nodes, for tests of slots. */

import {
  parseBackingData,
  printBackingData,
  silentLogger,
  type BackingData,
  type Instance,
  type JsonObject,
  type LaunchedInstance,
  type Logger,
} from '@nodepool/core';
import {
  instanceTags,
  simulatedTime,
  SimulatedBackingNodes,
  SimulatedLogins,
  TestProvider,
} from '@nodepool/driver-kit';
import { driver } from '../src/index.js';
import { slots } from './sections.js';

export const OWNER = 'NodePool:metastatic:meta';

export interface World {
  readonly time: ReturnType<typeof simulatedTime>;
  readonly backing: SimulatedBackingNodes;
  readonly logins: SimulatedLogins;
  readonly provider: TestProvider;
  readonly launch: (nodeId: string, attempt?: string) => Promise<LaunchedInstance>;
  readonly listed: () => Promise<readonly Instance[]>;
  /** Returns the messages of warnings. */
  readonly warnings: () => readonly string[];
  readonly used: () => readonly (readonly string[])[];
  readonly pass: (ms: number) => Promise<void>;
  readonly seconds: () => number;
}

/** Starts a provider; with `beside`, on the backing nodes of another one. */
export async function open(
  section: JsonObject = slots,
  prepare?: (world: World) => void,
  beside?: World,
): Promise<World> {
  const time = beside?.time ?? simulatedTime();
  const backing = beside?.backing ?? new SimulatedBackingNodes(time.clock);
  const logins = beside?.logins ?? new SimulatedLogins(time.clock);
  const warnings: string[] = [];
  const log: Logger = { ...silentLogger, warn: (message) => void warnings.push(message) };
  const provider = new TestProvider({ time, driver, section, backing, logins, log });
  const world: World = {
    time,
    backing,
    logins,
    provider,
    launch: async (nodeId, attempt) => {
      backing.launching({ id: nodeId, provider: 'meta', pool: 'main', type: ['small'] });
      const instance = await provider.launch(nodeId, { tags: instanceTags(provider.config, nodeId, attempt) });
      backing.launched(nodeId, instance);
      return instance;
    },
    listed: () => provider.end(provider.provider.listNodes(provider.call())),
    warnings: () => warnings,
    used: () =>
      backing
        .nodes()
        .map(({ user_data: data }) => [...(parseBackingData(data)?.used.values() ?? [])].map(({ node }) => node)),
    pass: async (ms) => {
      await time.until(() => false, ms);
    },
    seconds: () => time.clock.now() / 1000,
  };
  prepare?.(world);
  await provider.start();
  return world;
}

export function withLabel(change: JsonObject): JsonObject {
  const label = { name: 'small', 'backing-label': 'large', 'max-parallel-jobs': 4, 'grace-time': 10, ...change };
  return { name: 'meta', driver: 'metastatic', pools: [{ name: 'main', labels: [label] }] };
}

export function dataWith(change: Partial<BackingData> = {}): string {
  return printBackingData({
    owner: OWNER,
    label: 'small',
    slots: 4,
    failed: false,
    reason: null,
    launched: null,
    idle: null,
    used: new Map(),
    ...change,
  });
}

export const [ONE, TWO, THREE] = ['0000000001', '0000000002', '0000000003'];
