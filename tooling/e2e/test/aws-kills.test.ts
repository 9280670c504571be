/**
 * Launchers with a simulated AWS that are killed in each step of launches and deletions: every request is fulfilled, no
 * instance is created twice, and no resource is left. `pnpm scenario:aws` also kills at random times.
 */

import { mkdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { sleep, systemClock } from '@nodepool/core';
import { seededRandom } from '@nodepool/core/testing';
import { freePorts, zooKeeperForTests, type ZooKeeperForTests } from '@nodepool/dev-zookeeper';
import {
  labelsOffered,
  registeredPools,
  startLauncher,
  startRequestor,
  zooKeeperServers,
  type Program,
  type RunningRequestor,
} from '@nodepool/harness';
import { KEY_NAME, REGION, startSimulatedAws, type FaultRule, type SimulatedAws } from '@nodepool/simulated-aws';
import { connect, type ZooKeeper } from '@nodepool/zookeeper';

const LONG = process.env['NODEPOOL_SCENARIO'] === 'long';
const { kills, requests } = LONG ? { kills: 20, requests: 200 } : { kills: 2, requests: 20 };
const MAX_SERVERS = 16;
/** Maximum time from the registration of a launcher's pool until the launcher is killed (ms). */
const MAX_LIFE_MS = 4000;
const DEADLINE_MS = LONG ? 3_600_000 : 420_000;
const SESSION_TIMEOUT_S = 4;
/** Quota of dedicated hosts of the type of `host`. */
const HOST_QUOTA = 'L-D269BEFD';
const POLL_MS = 50;

interface Step {
  readonly name: string;
  readonly operation: string;
  readonly when: 'before' | 'after';
  readonly label: object;
}

const instance = { 'instance-type': 'm5.large' };
const fleet = { fleet: { 'instance-types': ['c5.large'], 'allocation-strategy': 'lowest-price' } };
const host = { 'instance-type': 'm6i.large', 'dedicated-host': true };
/** Steps of launches: the launcher is killed before or after the effect of a call. */
const STEPS: readonly Step[] = [
  { name: 'run-before', operation: 'ec2.RunInstances', when: 'before', label: instance },
  { name: 'run-after', operation: 'ec2.RunInstances', when: 'after', label: instance },
  { name: 'template-after', operation: 'ec2.CreateLaunchTemplate', when: 'after', label: fleet },
  { name: 'fleet-before', operation: 'ec2.CreateFleet', when: 'before', label: fleet },
  { name: 'fleet-after', operation: 'ec2.CreateFleet', when: 'after', label: fleet },
  { name: 'allocate-before', operation: 'ec2.AllocateHosts', when: 'before', label: host },
  { name: 'allocate-after', operation: 'ec2.AllocateHosts', when: 'after', label: host },
  { name: 'run-on-host-before', operation: 'ec2.RunInstances', when: 'before', label: host },
  { name: 'run-on-host-after', operation: 'ec2.RunInstances', when: 'after', label: host },
];
/** Number of nodes of each step; those of equal labels share a call. */
const NODES = 2;

let folder: string;
let cloud: SimulatedAws;
let server: ZooKeeperForTests;
let zooKeeper: ZooKeeper;
let launchers = 0;
/** True after all requests have ended. */
let hasEnded = false;
const programs: Program[] = [];

beforeEach(async () => {
  const name = (expect.getState().currentTestName ?? '').replace(/[^A-Za-z0-9]+/g, '-').slice(0, 80);
  folder = join(__dirname, '..', 'logs', `aws-${name}`);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const settings = { pendingMs: 1500, shuttingDownMs: 1000, resourceMs: 500, readLagMs: 300 };
  cloud = await startSimulatedAws({ random: seededRandom(1), settings });
  cloud.setQuota(HOST_QUOTA, 100);
  server = await zooKeeperForTests({ tickTime: 500 });
  zooKeeper = connect({ servers: server.servers });
  await zooKeeper.connected({ timeoutMs: DEADLINE_MS });
}, DEADLINE_MS);

afterEach(async () => {
  for (const program of programs.splice(0)) await program.kill();
  await zooKeeper.close();
  await server.stop();
  await cloud.close();
}, DEADLINE_MS);

async function launcher(labels: readonly { readonly name: string }[], maxServers: number): Promise<Program> {
  const { accessKeyId, secretAccessKey } = cloud.credentials;
  const [zone = ''] = Object.keys(cloud.subnets);
  const [port = 0] = await freePorts(1);
  const before = await registeredPools(zooKeeper);
  const program = await startLauncher({
    name: `launcher-${(launchers += 1)}`,
    folder,
    env: { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey },
    config: {
      'zookeeper-servers': zooKeeperServers(server.servers),
      'zookeeper-timeout': SESSION_TIMEOUT_S,
      drivers: [{ name: 'aws', package: dirname(require.resolve('@nodepool/driver-aws/package.json')) }],
      webapp: { port, listen_address: '127.0.0.1' },
      labels: labels.map(({ name }) => ({ name })),
      providers: [
        {
          ...{ name: 'east', driver: 'aws', 'region-name': REGION, 'endpoint-url': cloud.url, 'launch-retries': 20 },
          'cloud-images': [{ name: 'amazon', username: 'ec2-user', 'image-id': cloud.publicImageId }],
          pools: [
            {
              ...{ name: 'main', 'availability-zone': zone, 'subnet-id': cloud.subnets[zone] },
              ...{ 'max-servers': maxServers, 'host-key-checking': false, labels },
            },
          ],
        },
      ],
    },
  });
  programs.push(program);
  const names = labels.map(({ name }) => name);
  await program.while('offers its labels', DEADLINE_MS, (signal) => labelsOffered(zooKeeper, names, signal, before));
  return program;
}

async function ask(labels: readonly string[], ...more: readonly string[]): Promise<RunningRequestor> {
  const args = ['--labels', labels.join(','), '--wait-deleted', '--timeout', String(DEADLINE_MS / 1000), ...more];
  const requestor = await startRequestor({ servers: server.servers }, join(folder, 'requestor.log'), args);
  programs.push(requestor.program);
  hasEnded = false;
  void requestor.result.then(() => (hasEnded = true));
  return requestor;
}

/** Kills the launcher when each of the calls has been received, or has had its effect; none is answered. */
async function killIn(running: Program, rules: readonly Pick<Step, 'operation' | 'when'>[], tags?: readonly string[]) {
  const gates = rules.map(({ operation, when }, index) => {
    const tag = tags?.[index];
    const on: FaultRule['on'] = (call) =>
      call.operation === operation && (tag === undefined || [...call.parameters.values()].includes(tag));
    return cloud.faults.add({ on, times: Infinity, fault: { kind: 'hang', when } });
  });
  return async (): Promise<void> => {
    const what = `makes the calls ${rules.map(({ operation }) => operation).join(', ')}`;
    await running.while(what, DEADLINE_MS, async (signal) => {
      const isMissing = (): boolean => gates.some(({ hits }) => hits === 0);
      while (isMissing() && !hasEnded) await sleep(systemClock, POLL_MS, signal);
      const missing = rules.filter((_rule, index) => gates[index]?.hits === 0);
      expect(missing).toEqual([]);
    });
    await running.kill();
    for (const gate of gates) gate.remove();
  };
}

const live = (): readonly unknown[] => cloud.inspect.instances().filter(({ state }) => state !== 'terminated');

/** Returns everything that was created for nodes and exists. */
function leftovers(): readonly unknown[] {
  const { volumes, networkInterfaces, addresses, hosts } = cloud.inspect;
  const parts = [...volumes(), ...networkInterfaces(), ...addresses()];
  return [...live(), ...parts, ...hosts().filter(({ state }) => state !== 'released')];
}

it(
  'a launcher is killed in each step: no node is lost, no instance is created twice, and nothing is left',
  async () => {
    const labels = STEPS.map(({ name, label }) => ({
      ...{ name, 'cloud-image': 'amazon', 'key-name': KEY_NAME, tags: { step: name }, ...label },
    }));
    const start = (): Promise<Program> => launcher(labels, 100);
    let running = await start();
    const names = STEPS.map(({ name }) => name);
    let killed = await killIn(running, STEPS, names);
    const { result } = await ask(Array.from({ length: NODES }, () => names).flat(), '--hold', '1');
    await killed();
    // The next launchers finish the launches, and begin the deletions.
    const deletions = [
      { operation: 'ec2.TerminateInstances', when: 'before' },
      { operation: 'ec2.TerminateInstances', when: 'after' },
      { operation: 'ec2.ReleaseHosts', when: 'before' },
      { operation: 'ec2.ReleaseHosts', when: 'after' },
    ] as const;
    for (const step of deletions) {
      running = await start();
      killed = await killIn(running, [step]);
      await killed();
    }
    running = await start();
    const { summary } = await running.while('deletes the nodes', DEADLINE_MS, () => result);
    expect(summary).toMatchObject({ outcomes: { fulfilled: 1 }, problems: [], nodes: NODES * STEPS.length });
    const created = names.map((name) => cloud.inspect.instances().filter(({ tags }) => tags['step'] === name).length);
    expect(created).toEqual(names.map(() => NODES));
    await running.while('deletes everything', DEADLINE_MS, async (signal) => {
      while (leftovers().length > 0) await sleep(systemClock, POLL_MS, signal);
    });
  },
  DEADLINE_MS,
);

it(
  `${kills} launchers are killed at random times while answers are lost`,
  async () => {
    const random = seededRandom(7);
    const labels = ['one', 'two'].map((name) => ({
      ...{ name, 'cloud-image': 'amazon', 'key-name': KEY_NAME, 'instance-type': 'm5.large' },
    }));
    for (const operation of ['ec2.RunInstances', 'ec2.TerminateInstances']) {
      const rule = { on: operation, times: Infinity, probability: 0.05 };
      cloud.faults.add({ ...rule, fault: { kind: 'cut', when: 'after' } });
      cloud.faults.add({ ...rule, fault: { kind: 'status', status: 500, code: 'InternalError' } });
    }
    let running = await launcher(labels, MAX_SERVERS);
    const load = ['--requests', String(requests), '--parallel', String(MAX_SERVERS + 4), '--hold', '0.5'];
    const { result } = await ask(['one'], ...load);
    let most = 0;
    const watching = new AbortController();
    const watch = (async () => {
      while (!watching.signal.aborted) {
        most = Math.max(most, live().length);
        await sleep(systemClock, POLL_MS);
      }
    })();
    for (let kill = 0; kill < kills; kill += 1) {
      await running.while('creates instances', DEADLINE_MS, async (signal) => {
        while (live().length < MAX_SERVERS / 2) await sleep(systemClock, POLL_MS, signal);
      });
      await sleep(systemClock, random.next() * MAX_LIFE_MS);
      await running.kill();
      running = await launcher(labels, MAX_SERVERS);
    }
    const { summary } = await running.while('serves the requests', DEADLINE_MS, () => result);
    expect(summary).toMatchObject({ outcomes: { fulfilled: requests }, problems: [] });
    await running.while('deletes everything', DEADLINE_MS, async (signal) => {
      while (leftovers().length > 0) await sleep(systemClock, POLL_MS, signal);
    });
    watching.abort();
    await watch;
    expect(most).toBeLessThanOrEqual(MAX_SERVERS);
  },
  DEADLINE_MS,
);
