/**
 * Measures the ZooKeeper client by itself: operations per second and processor time of this process per operation, with 1,
 * 100 and 1,000 operations in flight, 100-byte values.
 *
 *   --data memory|disk   where ZooKeeper keeps its data: /dev/shm, or the folder for temporary files (default)
 *   --operations N       operations per measurement with more than one in flight (default 20000)
 */

import { tmpdir } from 'node:os';
import { parseArgs } from 'node:util';
import { startZooKeeper } from '@nodepool/dev-zookeeper';
import { connect, systemClock, type TransactionOp, type ZooKeeper } from '@nodepool/zookeeper';

const VALUE = Buffer.alloc(100, 'x');
const IN_FLIGHT = [1, 100, 1000] as const;
/** With one in flight, the time goes by waiting; fewer operations tell as much. */
const SHARE_OF_SERIAL = 0.1;
const OPERATIONS_PER_TRANSACTION = 10;

type Operation = (zooKeeper: ZooKeeper, folder: string, index: number) => Promise<unknown>;

/** In an order in which each finds what it needs. */
const OPERATIONS: readonly (readonly [name: string, operation: Operation])[] = [
  ['create', (zooKeeper, folder, index) => zooKeeper.create(`${folder}/${index}`, VALUE)],
  ['set', (zooKeeper, folder, index) => zooKeeper.set(`${folder}/${index}`, VALUE)],
  ['get', (zooKeeper, folder, index) => zooKeeper.get(`${folder}/${index}`)],
  ['transaction of 10 sets', (zooKeeper, folder, index) => zooKeeper.transaction(sets(`${folder}/${index}`))],
  ['delete', (zooKeeper, folder, index) => zooKeeper.delete(`${folder}/${index}`)],
];

function sets(path: string): TransactionOp[] {
  return Array.from({ length: OPERATIONS_PER_TRANSACTION }, () => ({ type: 'set', path, data: VALUE }));
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { data: { type: 'string', default: 'disk' }, operations: { type: 'string', default: '20000' } },
  });
  const operations = Number(values.operations);
  if (!Number.isInteger(operations) || operations < 1) throw new Error('--operations takes a positive number');
  const server = await startZooKeeper({
    parentFolder: values.data === 'memory' ? '/dev/shm' : tmpdir(),
    javaHeap: '1g',
  });
  const zooKeeper = connect({ servers: server.servers });
  try {
    await zooKeeper.connected();
    process.stdout.write(
      `${'in flight'.padStart(9)}  ${'operation'.padEnd(24)}${'per second'.padStart(11)}  CPU per operation\n`,
    );
    for (const inFlight of IN_FLIGHT) {
      const folder = `/bench-${inFlight}`;
      await zooKeeper.create(folder);
      const count = inFlight === 1 ? Math.ceil(operations * SHARE_OF_SERIAL) : operations;
      for (const [name, operation] of OPERATIONS) {
        const { perSecond, cpuMicroseconds } = await measure(count, inFlight, (index) =>
          operation(zooKeeper, folder, index),
        );
        process.stdout.write(
          `${String(inFlight).padStart(9)}  ${name.padEnd(24)}${perSecond.toFixed(0).padStart(11)}  ${cpuMicroseconds.toFixed(1)} µs\n`,
        );
      }
    }
  } finally {
    await zooKeeper.close();
    await server.stop();
  }
}

/** Runs `operation` for 0 to `count` - 1, that many at a time. */
async function measure(
  count: number,
  inFlight: number,
  operation: (index: number) => Promise<unknown>,
): Promise<{ readonly perSecond: number; readonly cpuMicroseconds: number }> {
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < count) await operation(next++);
  };
  const began = systemClock.monotonic();
  const cpuBefore = process.cpuUsage();
  await Promise.all(Array.from({ length: inFlight }, lane));
  const { user, system } = process.cpuUsage(cpuBefore);
  const seconds = (systemClock.monotonic() - began) / 1000;
  return { perSecond: count / seconds, cpuMicroseconds: (user + system) / count };
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  process.exitCode = 1;
});
