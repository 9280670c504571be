/** Puts a simulated OpenStack together and serves it. */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock, systemRandom } from '@nodepool/core';
import type { SimulatedOpenStack, SimulatedOpenStackOptions } from './api.js';
import { CallLog } from './calls.js';
import { cloudsYamlText } from './clouds-yaml.js';
import { computeService } from './compute/routes.js';
import type { Flavor, KeyPair } from './compute/records.js';
import { ServerStore } from './compute/servers.js';
import { FaultPlan } from './faults.js';
import type { Ground } from './ground.js';
import { CloudServer } from './http/server.js';
import { Accounts } from './identity/accounts.js';
import { Catalog } from './identity/catalog.js';
import { identityService } from './identity/routes.js';
import { ImageStore } from './image/images.js';
import { imageService } from './image/routes.js';
import { Inspector } from './inspect.js';
import { NetworkStore } from './network/networks.js';
import { networkService } from './network/routes.js';
import { Quotas } from './quotas.js';
import { DEFAULT_SETTINGS, SAMPLE_FLAVORS, type CloudSettings } from './settings.js';
import { newUuid } from './text.js';
import { VolumeStore } from './volume/volumes.js';
import { volumeService } from './volume/routes.js';

const SAMPLE_IMAGE_BYTES = 2 ** 20;

/** Starts one with the sample cloud in it. Rejects when the port is taken. */
export async function startSimulatedOpenStack(options: SimulatedOpenStackOptions = {}): Promise<SimulatedOpenStack> {
  const { clock = systemClock, random = systemRandom } = options;
  let settings: CloudSettings = { ...DEFAULT_SETTINGS, ...options.settings };
  let url = '';
  const authUrl = (): string => `${url}/identity/v3`;
  const ground: Ground = { clock, random, quotas: new Quotas(), settings: () => settings };
  const accounts = new Accounts(clock, random, ground.settings);
  const nameOfProject = (id: string): string => accounts.nameOfProject(id);
  const [images, networks, volumes, calls] = [
    new ImageStore(ground),
    new NetworkStore(ground),
    new VolumeStore(ground),
    new CallLog(),
  ] as const;
  const servers: ServerStore = new ServerStore(ground, networks, volumes, () => faults, nameOfProject);
  const faults: FaultPlan = new FaultPlan(random, {
    revokeTokens: () => accounts.revokeAll(),
    breakServer: (id, message) => withServer(servers, id, (server) => servers.fail(server, message)),
    vanish: (id) => withServer(servers, id, (server) => servers.vanish(server)),
  });
  const flavors: readonly Flavor[] = SAMPLE_FLAVORS.map((spec) => ({ ...spec, id: newUuid(random) }));
  const keyPairs: KeyPair[] = [];
  const surroundings = { flavors, keyPairs, images, networks, volumes };
  const server = new CloudServer({
    clock,
    random,
    faults,
    calls,
    settings: ground.settings,
    callerOf: (token) => accounts.caller(token),
    services: [
      identityService(accounts, new Catalog(() => url, random), authUrl),
      computeService({ ground, servers, surroundings, catalogue: { flavors, keyPairs } }, authUrl),
      imageService(images, ground, authUrl),
      networkService(networks, ground, authUrl),
      volumeService(volumes, ground, authUrl),
    ],
  });
  addSampleNetworks(accounts, networks);
  const sampleImages = new Set([addSampleImage(accounts, images)]);
  url = await server.listen(options.port ?? 0);
  const folder = await mkdtemp(join(tmpdir(), 'simulated-openstack-'));
  const cloudsYaml = join(folder, 'clouds.yaml');
  await writeFile(cloudsYaml, cloudsYamlText(authUrl()));
  return {
    url,
    authUrl: authUrl(),
    cloudsYaml,
    faults,
    calls,
    inspect: new Inspector({ servers, networks, volumes, images, nameOfProject, sampleImages }),
    quota: (project) => ground.quotas.project(project),
    configure: (changes) => {
      settings = { ...settings, ...changes };
    },
    close: async () => {
      servers.close();
      volumes.close();
      await server.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function withServer(
  servers: ServerStore,
  id: string,
  work: (server: NonNullable<ReturnType<ServerStore['table']['get']>>) => void,
): boolean {
  const server = servers.table.get(id);
  if (server !== undefined) work(server);
  return server !== undefined;
}

/** An external network of the administrator's; a private one behind a router for each of the others. */
function addSampleNetworks(accounts: Accounts, networks: NetworkStore): void {
  const external = networks.addNetwork(accounts.projectNamed('admin').id, 'public', { external: true });
  networks.addSubnet(external, 'public-subnet', '172.24.0.0/20', 4);
  for (const { id } of accounts.projects) networks.addSecurityGroup(id, 'default', 'Default security group');
  for (const [name, cidr] of [
    ['demo', '10.10.0.0/16'],
    ['limited', '10.20.0.0/16'],
  ] as const) {
    const { id } = accounts.projectNamed(name);
    const subnet = networks.addSubnet(networks.addNetwork(id, 'private'), 'private-subnet', cidr, 4);
    networks.addInterface(networks.addRouter(id, 'router', external), subnet);
  }
}

function addSampleImage(accounts: Accounts, images: ImageStore): string {
  const spec = {
    id: undefined,
    name: 'test-image',
    diskFormat: 'raw',
    containerFormat: 'bare',
    visibility: 'public',
    protected: false,
    minDisk: 0,
    minRam: 0,
    tags: [],
    properties: new Map<string, string>(),
  };
  return images.addActive(spec, accounts.projectNamed('admin').id, Buffer.alloc(SAMPLE_IMAGE_BYTES)).id;
}
