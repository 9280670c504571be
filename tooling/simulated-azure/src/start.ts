/** Starts a simulated Azure. */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemRandom } from '@nodepool/core';
import { CallLog, CloudServer, type CloudConnections, type SimulatedCloudOptions } from '@nodepool/simulated-cloud';
import { ArmRoutes } from './arm-routes.js';
import { serverCertificate } from './certificate.js';
import { Cloud } from './cloud.js';
import { Disks } from './disks.js';
import { AzureFaults } from './faults.js';
import { Login } from './login.js';
import { Machines } from './machines.js';
import { Networks } from './network.js';
import { Region } from './region.js';
import { ACCOUNT, SAMPLE, type CloudSettings } from './settings.js';
import type { Resource, ResourceType } from './store.js';

/** Maximum size of a body in bytes: larger than the largest page range of a disk. */
const MAX_BODY_BYTES = 8 * 2 ** 20;

export type SimulatedAzureOptions = SimulatedCloudOptions<CloudSettings>;

/** A running simulated Azure. */
export interface SimulatedAzure {
  /** e.g. `https://localhost:20345`. */
  readonly url: string;
  /** Path for `auth-path` and `AZURE_AUTH_LOCATION`. */
  readonly authFile: string;
  readonly faults: AzureFaults;
  readonly calls: CallLog;
  /** Refuses connections, and accepts them again. */
  readonly connections: CloudConnections;
  readonly machines: Pick<Machines, 'addForeign' | 'break' | 'destroy' | 'evict'>;
  readonly disks: Pick<Disks, 'addImage' | 'contentOf'>;
  /** Returns the resources that currently exist, even if lists do not show them. */
  list(type: ResourceType): readonly Resource[];
  /** Removes a resource without its parts, as if a deletion had stopped half-way. */
  remove(resource: Resource): void;
  /**
   * Creates a resource with the tags and properties of another one, as a person does who restores a backup or deploys
   * an exported template.
   */
  copy(resource: Resource, group: string, name: string): Resource;
  /** Sets the limit of a usage, e.g. `virtualMachines`. */
  setLimit(usage: string, limit: number): void;
  /** Presents an expired certificate to new connections, or the valid one again. Closes all connections. */
  presentExpiredCertificate(isExpired: boolean): void;
  revokeTokens(): void;
  /** Replaces the client secret of the sample account. The former one counts as expired. `authFile` is unchanged. */
  changeSecret(secret: string): void;
  forgetOperations(): void;
  configure(changes: Partial<CloudSettings>): void;
  close(): Promise<void>;
}

/** Starts a simulated Azure with the sample account. Rejects if the port is in use. */
export async function startSimulatedAzure(options: SimulatedAzureOptions = {}): Promise<SimulatedAzure> {
  const folder = await mkdtemp(join(tmpdir(), 'simulated-azure-'));
  const { cert, expiredCert, key, ca } = await serverCertificate();
  const caFile = join(folder, 'ca.pem');
  await writeFile(caFile, ca);
  const faults = new AzureFaults(options.random ?? systemRandom);
  const calls = new CallLog();
  const cloud = new Cloud(options, faults);
  cloud.groups.set(SAMPLE.resourceGroup, SAMPLE.location);
  const login = new Login(cloud);
  const machines = new Machines(cloud);
  const disks = new Disks(cloud);
  const arm = new ArmRoutes(cloud, login);
  const services = [login, machines, new Networks(cloud), disks, new Region(cloud, machines)];
  const server = new CloudServer({
    ...{ state: cloud, faults, calls, form: arm.form, ignoresCase: true, bodyLimit: MAX_BODY_BYTES },
    tls: { cert, key },
    routes: services.flatMap((service) => service.routes()).map((route) => arm.served(route)),
    describe: (call) => call,
  });
  cloud.url = `https://localhost:${await server.listen(options.port ?? 0)}`;
  const authFile = join(folder, 'auth.json');
  const endpoints = { activeDirectoryEndpointUrl: cloud.url, resourceManagerEndpointUrl: `${cloud.url}/` };
  await writeFile(authFile, JSON.stringify({ ...ACCOUNT, ...endpoints, caFile }, null, 2));
  return {
    ...{ url: cloud.url, authFile, faults, calls, machines, disks, connections: server },
    list: (type) => cloud.store.list(type),
    remove: (resource) => cloud.store.remove(resource, 0),
    copy: ({ type, location, tags, extra, properties }, group, name) => {
      cloud.groups.set(group, location);
      return cloud.store.put({ type, location, tags, extra, properties, group, name, workMs: 0 });
    },
    setLimit: (usage, limit) => void cloud.limits.set(usage, limit),
    presentExpiredCertificate: (isExpired) => server.present({ cert: isExpired ? expiredCert : cert, key }),
    revokeTokens: () => login.revokeAll(),
    changeSecret: (secret) => login.changeSecret(secret),
    forgetOperations: () => cloud.operations.forgetAll(),
    configure: (changes) => cloud.configure(changes),
    close: async () => {
      await server.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
