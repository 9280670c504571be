/**
 * Uploads to a simulated AWS by a builder that is killed in the middle: the next builder continues them, within a bound
 * of its memory. `pnpm scenario:aws` uploads disks of 10 GiB.
 */

import { mkdirSync, openSync, readFileSync, rmSync, truncateSync, writeSync, closeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { zooKeeperForTests, type ZooKeeperForTests } from '@nodepool/dev-zookeeper';
import { FAKE_DIB_COMMAND } from '@nodepool/fake-dib';
import { conditionMet, startBuilder, zooKeeperServers, type Program } from '@nodepool/harness';
import { sleep, systemClock } from '@nodepool/core';
import { BUCKET, REGION, startSimulatedAws, type SimulatedAws } from '@nodepool/simulated-aws';
import { connect, type ZooKeeper } from '@nodepool/zookeeper';

const LONG = process.env['NODEPOOL_SCENARIO'] === 'long';
const MIB = 1024 * 1024;
/** Size of the disk, and of each piece of data in it; the other blocks are empty. */
const DISK_MIB = LONG ? 10 * 1024 : 256;
const PIECE_MIB = LONG ? 32 : 64;
const PIECES = 4 * (LONG ? 16 : 1);
/** Maximum increase of the builder's peak resident memory during an upload of any size (MiB). */
const GROWTH_MAX_MIB = LONG ? 64 : 48;
const DEADLINE_MS = LONG ? 3_600_000 : 240_000;
const SESSION_TIMEOUT_S = 4;
const POLL_MS = 100;
/** Latency of calls that transfer blocks, so that their progress is marked before the end (ms). */
const LATENCY_MS = 700;

/** How a method sends its data. */
const METHODS = [
  {
    method: 'snapshot',
    operation: 's3.UploadPart',
    before: 's3.ListMultipartUploads',
    total: DISK_MIB / 8,
    sentFirst: DISK_MIB / 16,
    again: 0,
  },
  {
    method: 'image',
    operation: 's3.UploadPart',
    before: 's3.ListMultipartUploads',
    total: DISK_MIB / 8,
    sentFirst: DISK_MIB / 16,
    again: 0,
  },
  {
    ...{
      method: 'ebs-direct',
      operation: 'ebs.PutSnapshotBlock',
      before: 'ec2.DescribeSnapshots',
      total: 2 * PIECES * PIECE_MIB,
    },
    sentFirst: Math.round(1.5 * PIECES * PIECE_MIB),
    // Blocks since the last mark: those of the interval, and of the delay of the mark.
    again: 320,
  },
] as const;

let folder: string;
let cloud: SimulatedAws;
let server: ZooKeeperForTests;
let zooKeeper: ZooKeeper;
const programs: Program[] = [];

beforeEach(async () => {
  const name = (expect.getState().currentTestName ?? '').replace(/[^A-Za-z0-9]+/g, '-').slice(0, 80);
  folder = join(__dirname, '..', 'logs', `aws-${name}`);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(join(folder, 'images'), { recursive: true });
  cloud = await startSimulatedAws({ settings: { storesContent: false, importMs: 2000, resourceMs: 500 } });
  server = await zooKeeperForTests({ tickTime: 500 });
  zooKeeper = connect({ servers: server.servers });
  await zooKeeper.connected({ timeoutMs: DEADLINE_MS });
  writeDisk(join(folder, 'disk.raw'));
}, DEADLINE_MS);

afterEach(async () => {
  for (const program of programs.splice(0)) await program.kill();
  await zooKeeper.close();
  await server.stop();
  await cloud.close();
  rmSync(join(folder, 'disk.raw'), { force: true });
  rmSync(join(folder, 'images'), { recursive: true, force: true });
}, DEADLINE_MS);

/** Writes a sparse file with pieces of data. */
function writeDisk(path: string): void {
  const file = openSync(path, 'w');
  for (let piece = 0; piece < PIECES; piece += 1) {
    const offset = Math.floor((piece * DISK_MIB) / PIECES) * MIB;
    writeSync(file, Buffer.alloc(PIECE_MIB * MIB, `piece ${piece}`), 0, PIECE_MIB * MIB, offset);
  }
  closeSync(file);
  truncateSync(path, DISK_MIB * MIB);
}

async function builder(method: string): Promise<Program> {
  const { accessKeyId, secretAccessKey } = cloud.credentials;
  const image = { name: 'debian', elements: ['debian-minimal'], 'dib-cmd': FAKE_DIB_COMMAND };
  const program = await startBuilder({
    folder,
    env: { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey },
    config: {
      'zookeeper-servers': zooKeeperServers(server.servers),
      'zookeeper-timeout': SESSION_TIMEOUT_S,
      drivers: [{ name: 'aws', package: dirname(require.resolve('@nodepool/driver-aws/package.json')) }],
      'images-dir': join(folder, 'images'),
      'build-log-dir': join(folder, 'builds'),
      diskimages: [{ ...image, 'env-vars': { FAKE_DIB_CONTENT: join(folder, 'disk.raw') } }],
      labels: [{ name: 'debian' }],
      providers: [
        {
          ...{ name: 'east', driver: 'aws', 'region-name': REGION, 'endpoint-url': cloud.url },
          'object-storage': { 'bucket-name': BUCKET },
          diskimages: [{ name: 'debian', 'import-method': method }],
          pools: [
            {
              name: 'main',
              labels: [{ name: 'debian', diskimage: 'debian', 'key-name': 'nodepool', 'instance-type': 'm5.large' }],
            },
          ],
        },
      ],
    },
  });
  programs.push(program);
  return program;
}

/** Peak of the resident memory (MiB). */
function peakMemoryMib(pid: number): number {
  const kib = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(kib) / 1024;
}

describe.each(METHODS)('the import method $method', ({ method, operation, before, total, sentFirst, again }) => {
  it(
    'continues the upload of a builder that was killed, in little memory',
    async () => {
      const isTransfer = ({ operation: name }: { readonly operation: string }): boolean => name === operation;
      if (method === 'ebs-direct') {
        cloud.faults.add({ on: isTransfer, times: Infinity, fault: { kind: 'latency', ms: LATENCY_MS } });
      }
      const gate = cloud.faults.add({
        ...{ on: isTransfer, after: sentFirst, times: Infinity },
        fault: { kind: 'hang', when: 'before' },
      });
      const first = await builder(method);
      await first.while('uploads a part of the disk', DEADLINE_MS, async (signal) => {
        while (gate.hits === 0) await sleep(systemClock, POLL_MS, signal);
      });
      await first.kill();
      expect(cloud.inspect.images()).toEqual([]);
      cloud.faults.clear();
      cloud.calls.reset();

      const second = await builder(method);
      // The first call of the upload precedes the reading of the file; Amazon's libraries are loaded then.
      let idleMib = 0;
      cloud.faults.add({
        on: (call) => {
          if (idleMib === 0 && call.operation === before) idleMib = peakMemoryMib(second.pid);
          return false;
        },
        fault: { kind: 'latency', ms: 0 },
      });
      await second.while('uploads the image', DEADLINE_MS, (signal) =>
        conditionMet(zooKeeper, '/nodepool/images', signal, async () =>
          cloud.inspect.images().some(({ state, tags }) => state === 'available' && 'nodepool_upload_id' in tags),
        ),
      );
      const sent = cloud.calls.count(operation);
      const memoryMib = peakMemoryMib(second.pid);
      process.stdout.write(
        `aws ${method}: ${DISK_MIB} MiB; sent again or first after the kill: ${sent} of ${total} parts; ` +
          `peak memory of the builder ${memoryMib.toFixed(0)} MiB, ${idleMib.toFixed(0)} MiB of them before\n`,
      );
      expect(sent).toBeGreaterThan(0);
      expect(sent).toBeLessThanOrEqual(total - sentFirst + again);
      expect(memoryMib - idleMib).toBeLessThan(GROWTH_MAX_MIB);
      expect(idleMib).toBeGreaterThan(0);
      await second.while('deletes the object', DEADLINE_MS, (signal) =>
        conditionMet(zooKeeper, '/nodepool/images', signal, async () => cloud.inspect.objects().length === 0),
      );
      expect(cloud.inspect.uploads()).toEqual([]);
      expect(cloud.inspect.images()).toHaveLength(1);
      expect(cloud.inspect.snapshots()).toHaveLength(1);
    },
    DEADLINE_MS,
  );
});
