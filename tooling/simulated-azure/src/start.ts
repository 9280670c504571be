/** Puts a simulated Azure together and serves it. */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock, systemRandom, type Clock, type RandomSource } from '@nodepool/core';
import { serverCertificate } from './certificate.js';
import { Cloud } from './cloud.js';
import { Disks } from './disks.js';
import { CallLog, FaultPlan } from './faults.js';
import { Login } from './login.js';
import { Machines } from './machines.js';
import { Networks } from './network.js';
import { Region } from './region.js';
import { CloudServer } from './server.js';
import { ACCOUNT, DEFAULT_SETTINGS, SAMPLE, type CloudSettings } from './settings.js';
import type { Resource, ResourceType } from './store.js';

export interface SimulatedAzureOptions {
  readonly clock?: Clock;
  readonly random?: RandomSource;
  /** Default: a free one. */
  readonly port?: number;
  readonly settings?: Partial<CloudSettings>;
}

/** A running one. */
export interface SimulatedAzure {
  /** e.g. `https://localhost:20345`. */
  readonly url: string;
  /** The file that `auth-path` and `AZURE_AUTH_LOCATION` name. */
  readonly authFile: string;
  readonly faults: FaultPlan;
  readonly calls: CallLog;
  readonly machines: Pick<Machines, 'addForeign' | 'break' | 'destroy'>;
  readonly disks: Pick<Disks, 'addImage' | 'contentOf'>;
  /** What exists right now, whatever lists say. */
  list(type: ResourceType): readonly Resource[];
  /** Takes one away without what belongs to it, as if its deletion had been forgotten half-way. */
  remove(resource: Resource): void;
  /** Limit of a usage, e.g. `virtualMachines`. */
  setLimit(usage: string, limit: number): void;
  revokeTokens(): void;
  forgetOperations(): void;
  configure(changes: Partial<CloudSettings>): void;
  close(): Promise<void>;
}

/** Starts one with the sample account in it. Rejects when the port is taken. */
export async function startSimulatedAzure(options: SimulatedAzureOptions = {}): Promise<SimulatedAzure> {
  const { clock = systemClock, random = systemRandom } = options;
  let settings: CloudSettings = { ...DEFAULT_SETTINGS, ...options.settings };
  const folder = await mkdtemp(join(tmpdir(), 'simulated-azure-'));
  const { cert, key, ca } = await serverCertificate();
  const caFile = join(folder, 'ca.pem');
  await writeFile(caFile, ca);
  const faults = new FaultPlan();
  const calls = new CallLog();
  const cloud = new Cloud(clock, random, faults, () => settings);
  cloud.groups.set(SAMPLE.resourceGroup, SAMPLE.location);
  const login = new Login(clock, random, cloud.settings, () => cloud.base);
  const machines = new Machines(cloud);
  const disks = new Disks(cloud);
  const server = new CloudServer({
    ...{ clock, faults, calls, settings: cloud.settings },
    cert,
    key,
    routes: [login, machines, new Networks(cloud), disks, new Region(cloud, machines)].flatMap((service) =>
      service.routes(),
    ),
    isValid: (authorization) => login.isValid(authorization),
  });
  cloud.base = await server.listen(options.port ?? 0);
  const authFile = join(folder, 'auth.json');
  const endpoints = { activeDirectoryEndpointUrl: cloud.base, resourceManagerEndpointUrl: `${cloud.base}/` };
  await writeFile(authFile, JSON.stringify({ ...ACCOUNT, ...endpoints, caFile }, null, 2));
  return {
    ...{ url: cloud.base, authFile, faults, calls, machines, disks },
    list: (type) => cloud.store.list(type),
    remove: (resource) => cloud.store.remove(resource, 0),
    setLimit: (usage, limit) => void cloud.limits.set(usage, limit),
    revokeTokens: () => login.revokeAll(),
    forgetOperations: () => cloud.operations.forgetAll(),
    configure: (changes) => {
      settings = { ...settings, ...changes };
    },
    close: async () => {
      await server.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
