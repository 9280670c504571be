/** A builder and launchers with the driver for Google Compute Engine, on a simulated one: from the build of an image to the last deletion. */

import { mkdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { startSimulatedGce, type SimulatedGce } from '@nodepool/dev-gce';
import { freePorts, startZooKeeper, type RunningZooKeeper } from '@nodepool/dev-zookeeper';
import { FAKE_DIB_COMMAND } from '@nodepool/fake-dib';
import {
  conditionMet,
  labelsOffered,
  noNodesLeft,
  registeredPools,
  startBuilder,
  startLauncher,
  startRequestor,
  type Program,
  type RunningRequestor,
} from '@nodepool/harness';
import { connect, type ZooKeeper } from '@nodepool/zookeeper';

const FOLDER = join(__dirname, '..', 'logs', 'gce');
const DEADLINE_MS = 150_000;
const SESSION_TIMEOUT_S = 4;
const NODES = 100;
/** Lists included; see `docs/drivers/gce.md`. */
const CALLS_PER_NODE = 6;
const LABELS = ['built', 'public'] as const;

let cloud: SimulatedGce;
let server: RunningZooKeeper;
let zooKeeper: ZooKeeper;
const programs: Program[] = [];

beforeAll(async () => {
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(join(FOLDER, 'images'), { recursive: true });
  cloud = await startSimulatedGce({ settings: { bootMs: 2000, deleteMs: 1000, operationMs: 500, listLagMs: 500 } });
  server = await startZooKeeper({ tickTime: 500 });
  zooKeeper = connect({ servers: server.servers });
  await zooKeeper.connected({ timeoutMs: DEADLINE_MS });
});

afterAll(async () => {
  await Promise.all(programs.map((program) => program.kill()));
  await zooKeeper.close();
  await server.stop();
  await cloud.close();
});

function config(): object {
  const [host, port] = server.servers.split(':');
  const { url, credentialsFile } = cloud;
  const type = { 'instance-type': 'e2-micro' };
  return {
    'zookeeper-servers': [{ host, port: Number(port) }],
    'zookeeper-timeout': SESSION_TIMEOUT_S,
    drivers: [{ name: 'gce', package: dirname(require.resolve('@nodepool/driver-gce/package.json')) }],
    'images-dir': join(FOLDER, 'images'),
    'build-log-dir': join(FOLDER, 'builds'),
    diskimages: [{ name: 'debian', elements: ['debian-minimal'], 'dib-cmd': FAKE_DIB_COMMAND }],
    labels: LABELS.map((name) => ({ name })),
    providers: [
      {
        name: 'google',
        driver: 'gce',
        project: 'acme',
        region: 'us-central1',
        zone: 'us-central1-a',
        rate: 100,
        'api-endpoint': url,
        'storage-endpoint': url,
        'storage-bucket': 'acme-images',
        'credentials-file': credentialsFile,
        diskimages: [{ name: 'debian' }],
        'cloud-images': [{ name: 'debian-12', 'image-project': 'debian-cloud', 'image-family': 'debian-12' }],
        pools: [
          {
            name: 'main',
            zones: ['us-central1-a', 'us-central1-b'],
            // Nothing answers at the addresses of a simulated cloud.
            'host-key-checking': false,
            labels: [
              { name: 'built', diskimage: 'debian', ...type },
              { name: 'public', 'cloud-image': 'debian-12', ...type },
            ],
          },
        ],
      },
    ],
  };
}

async function launcher(name: string): Promise<Program> {
  const [port = 0] = await freePorts(1);
  const before = await registeredPools(zooKeeper);
  const program = await startLauncher({
    name,
    folder: FOLDER,
    config: { ...config(), webapp: { port, listen_address: '127.0.0.1' } },
  });
  programs.push(program);
  await program.while('offers its labels', DEADLINE_MS, (signal) => labelsOffered(zooKeeper, LABELS, signal, before));
  return program;
}

/** One request for each label and each of the nodes. */
async function ask(name: string, label: string, count: number): Promise<RunningRequestor> {
  const args = ['--labels', label, '--requests', String(count), '--parallel', String(count), '--hold', '1'];
  const log = join(FOLDER, `${name}.log`);
  const more = ['--timeout', String(DEADLINE_MS / 1000), '--wait-deleted'];
  const requestor = await startRequestor({ servers: server.servers }, log, [...args, ...more]);
  programs.push(requestor.program);
  return requestor;
}

async function imageUploaded(signal: AbortSignal): Promise<void> {
  await conditionMet(zooKeeper, '/nodepool/images', signal, async () => cloud.inspect.images().length > 0);
}

it('builds and uploads an image, makes a hundred nodes, survives a kill -9, and leaves nothing', async () => {
  const builder = await startBuilder({ name: 'builder', folder: FOLDER, config: config() });
  programs.push(builder);
  await builder.while('uploads the image', DEADLINE_MS, imageUploaded);
  expect(cloud.inspect.objects()).toEqual([]);

  const first = await launcher('launcher-1');
  const before = total(cloud.calls());
  const requestors = [
    await ask('requestor-1', 'built', NODES / 2),
    await ask('requestor-2', 'public', NODES / 2),
  ] as const;
  for (const { result } of requestors)
    expect((await result).summary).toMatchObject({ outcomes: { fulfilled: NODES / 2 }, problems: [] });
  await first.while('deletes all nodes', DEADLINE_MS, (signal) => noNodesLeft(zooKeeper, signal));
  expect(cloud.inspect.instances()).toEqual([]);
  const perNode = (total(cloud.calls()) - before) / NODES;
  expect(perNode).toBeLessThan(CALLS_PER_NODE);

  const third = await ask('requestor-3', 'built', 20);
  await first.while('makes instances', DEADLINE_MS, (signal) =>
    conditionMet(zooKeeper, '/nodepool/nodes', signal, async () => cloud.inspect.instances().length >= 5),
  );
  await first.kill();
  const second = await launcher('launcher-2');
  expect((await third.result).summary).toMatchObject({ outcomes: { fulfilled: 20 } });
  await second.while('deletes all nodes', DEADLINE_MS, (signal) => noNodesLeft(zooKeeper, signal));
  expect(cloud.inspect.instances()).toEqual([]);
  process.stdout.write(`API calls per node: ${perNode.toFixed(2)} ${JSON.stringify(cloud.calls())}\n`);
});

function total(calls: Readonly<Record<string, number>>): number {
  return Object.values(calls).reduce((sum, count) => sum + count, 0);
}
