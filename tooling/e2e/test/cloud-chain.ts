/** A builder and launchers with the driver of a simulated cloud, from the image build to the last deletion. */

import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { freePorts, zooKeeperForTests, type ZooKeeperForTests } from '@nodepool/dev-zookeeper';
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
  zooKeeperServers,
} from '@nodepool/harness';
import { connect, type ZooKeeper } from '@nodepool/zookeeper';

const DEADLINE_MS = 900_000;
const SESSION_TIMEOUT_S = 4;
const NODES = 100;

/** Labels that the provider must offer: one of the built image `debian`, and one of an image of the cloud. */
export const LABELS = ['built', 'public'] as const;

/** A simulated cloud for the chain. */
export interface ChainCloud {
  /** Section of a provider that offers `LABELS`. */
  readonly provider: object;
  /** Returns the number of uploaded images that can be used. */
  images(): number;
  /** Returns the existing resources that were created for nodes. */
  leftovers(): readonly unknown[];
  instances(): number;
  /** Returns the number of calls so far. */
  calls(): number;
  /** Returns the remaining resources of completed uploads. */
  uploadLeftovers(): readonly unknown[];
  close(): Promise<void>;
}

export interface Chain {
  /** Name of the driver. */
  readonly driver: string;
  /** Folder of the driver's package. */
  readonly driverPackage: string;
  /** Maximum number of API calls per node, listings included. */
  readonly callsPerNode: number;
  openCloud(): Promise<ChainCloud>;
}

/** Registers the test. */
export function describeChain({ driver, driverPackage, callsPerNode, openCloud }: Chain): void {
  const folder = join(__dirname, '..', 'logs', driver);
  const programs: Program[] = [];
  let cloud: ChainCloud;
  let server: ZooKeeperForTests;
  let zooKeeper: ZooKeeper;

  beforeAll(async () => {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(join(folder, 'images'), { recursive: true });
    cloud = await openCloud();
    server = await zooKeeperForTests({ tickTime: 500 });
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
    return {
      'zookeeper-servers': zooKeeperServers(server.servers),
      'zookeeper-timeout': SESSION_TIMEOUT_S,
      drivers: [{ name: driver, package: driverPackage }],
      'images-dir': join(folder, 'images'),
      'build-log-dir': join(folder, 'builds'),
      diskimages: [{ name: 'debian', elements: ['debian-minimal'], 'dib-cmd': FAKE_DIB_COMMAND }],
      labels: LABELS.map((name) => ({ name })),
      providers: [cloud.provider],
    };
  }

  async function launcher(name: string): Promise<Program> {
    const [port = 0] = await freePorts(1);
    const before = await registeredPools(zooKeeper);
    const program = await startLauncher({
      name,
      folder: folder,
      config: { ...config(), webapp: { port, listen_address: '127.0.0.1' } },
    });
    programs.push(program);
    await program.while('offers its labels', DEADLINE_MS, (signal) => labelsOffered(zooKeeper, LABELS, signal, before));
    return program;
  }

  /** Requests the given number of nodes of a label, each with its own request. */
  async function ask(name: string, label: string, count: number): Promise<RunningRequestor> {
    const args = ['--labels', label, '--requests', String(count), '--parallel', String(count), '--hold', '1'];
    const log = join(folder, `${name}.log`);
    const more = ['--timeout', String(DEADLINE_MS / 1000), '--wait-deleted'];
    const requestor = await startRequestor({ servers: server.servers }, log, [...args, ...more]);
    programs.push(requestor.program);
    return requestor;
  }

  async function imageUploaded(signal: AbortSignal): Promise<void> {
    await conditionMet(zooKeeper, '/nodepool/images', signal, async () => cloud.images() > 0);
  }

  it('builds and uploads an image, creates a hundred nodes, survives a kill -9, and leaves no resources', async () => {
    const builder = await startBuilder({ name: 'builder', folder: folder, config: config() });
    programs.push(builder);
    await builder.while('uploads the image', DEADLINE_MS, imageUploaded);
    expect(cloud.uploadLeftovers()).toEqual([]);

    const first = await launcher('launcher-1');
    const before = cloud.calls();
    const requestors = [
      await ask('requestor-1', 'built', NODES / 2),
      await ask('requestor-2', 'public', NODES / 2),
    ] as const;
    for (const { result } of requestors)
      expect((await result).summary).toMatchObject({ outcomes: { fulfilled: NODES / 2 }, problems: [] });
    await first.while('deletes all nodes', DEADLINE_MS, (signal) => noNodesLeft(zooKeeper, signal));
    expect(cloud.leftovers()).toEqual([]);
    const perNode = (cloud.calls() - before) / NODES;
    expect(perNode).toBeLessThan(callsPerNode);

    const third = await ask('requestor-3', 'built', 20);
    await first.while('makes instances', DEADLINE_MS, (signal) =>
      conditionMet(zooKeeper, '/nodepool/nodes', signal, async () => cloud.instances() >= 5),
    );
    await first.kill();
    const second = await launcher('launcher-2');
    expect((await third.result).summary).toMatchObject({ outcomes: { fulfilled: 20 } });
    await second.while('deletes all nodes', DEADLINE_MS, (signal) => noNodesLeft(zooKeeper, signal));
    expect(cloud.leftovers()).toEqual([]);
    process.stdout.write(`${driver}: API calls per node: ${perNode.toFixed(2)}\n`);
  });
}
