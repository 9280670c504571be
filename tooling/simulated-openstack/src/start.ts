/** Starts a simulated OpenStack. */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CallLog, CloudServer } from '@nodepool/simulated-cloud';
import type { SimulatedOpenStack, SimulatedOpenStackOptions } from './api.js';
import { cloudsYamlText } from './clouds-yaml.js';
import { computeService } from './compute/routes.js';
import type { Flavor, KeyPair } from './compute/records.js';
import { ServerStore } from './compute/servers.js';
import { OpenStackState } from './cloud-state.js';
import { FaultPlan, type CloudCall } from './faults.js';
import { Services } from './http/serve.js';
import { Accounts } from './identity/accounts.js';
import { Catalog } from './identity/catalog.js';
import { identityService } from './identity/routes.js';
import { CloudImages, NO_IMAGE } from './image/images.js';
import { imageService } from './image/routes.js';
import { Inspector } from './inspect.js';
import { NetworkStore } from './network/networks.js';
import { networkService } from './network/routes.js';
import { SAMPLE_FLAVORS } from './settings.js';
import { newUuid } from './text.js';
import { VolumeStore } from './volume/volumes.js';
import { volumeService } from './volume/routes.js';

const SAMPLE_IMAGE_BYTES = 2 ** 20;

/** Starts a simulated OpenStack with the sample cloud. Rejects if the port is in use. */
export async function startSimulatedOpenStack(options: SimulatedOpenStackOptions = {}): Promise<SimulatedOpenStack> {
  const state = new OpenStackState(options);
  const { random } = state;
  const accounts = new Accounts(state);
  const nameOfProject = (id: string): string => accounts.nameOfProject(id);
  const [images, networks, volumes] = [
    new CloudImages(state),
    new NetworkStore(state),
    new VolumeStore(state),
  ] as const;
  const servers: ServerStore = new ServerStore(state, networks, volumes, () => faults, nameOfProject);
  const faults: FaultPlan = new FaultPlan(random, {
    revokeTokens: () => accounts.revokeAll(),
    breakServer: (id, message) => withServer(servers, id, (server) => servers.fail(server, message)),
    removeServer: (id) => withServer(servers, id, (server) => servers.remove(server)),
  });
  const flavors: readonly Flavor[] = SAMPLE_FLAVORS.map((spec) => ({ ...spec, id: newUuid(random) }));
  const keyPairs: KeyPair[] = [];
  const context = { flavors, keyPairs, images, networks, volumes };
  const services = new Services(
    state,
    [
      identityService(accounts, new Catalog(state), state),
      computeService({ state, servers, context, catalogue: { flavors, keyPairs } }),
      imageService(images, state),
      networkService(networks, state),
      volumeService(volumes, images, state),
    ],
    (token) => accounts.caller(token),
  );
  const calls = new CallLog<CloudCall>();
  const server = new CloudServer({
    ...{ state, faults, calls, form: services.form, routes: services.routes() },
    describe: (call, context) => services.describe(call, context),
  });
  addSampleNetworks(accounts, networks);
  const sampleImages = new Set([addSampleImage(accounts, images)]);
  state.url = `http://127.0.0.1:${await server.listen(options.port ?? 0)}`;
  const folder = await mkdtemp(join(tmpdir(), 'simulated-openstack-'));
  const cloudsYaml = join(folder, 'clouds.yaml');
  await writeFile(cloudsYaml, cloudsYamlText(state.authUrl));
  return {
    url: state.url,
    authUrl: state.authUrl,
    cloudsYaml,
    faults,
    calls,
    connections: server,
    inspect: new Inspector({ servers, networks, volumes, images, nameOfProject, sampleImages }),
    quota: (project) => state.quotas.project(project),
    configure: (changes) => state.configure(changes),
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

/** Adds an external network of the administrator, and a private network behind a router for each other project. */
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

function addSampleImage(accounts: Accounts, images: CloudImages): string {
  const spec = { ...NO_IMAGE, name: 'test-image', visibility: 'public' };
  return images.addActive(spec, accounts.projectNamed('admin').id, Buffer.alloc(SAMPLE_IMAGE_BYTES)).id;
}
