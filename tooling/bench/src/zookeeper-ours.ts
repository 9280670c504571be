/**
 * Measures the client of this workspace. Arguments: servers, folder, operations in flight, number of operations; or
 * servers, an existing path, `events`, number of events. In the latter case it prints `ready` and waits for changes of
 * the path.
 */

import { connect, type TransactionOp, type ZooKeeper } from '@nodepool/zookeeper';
import { measureClient, report, stopwatch, WATCH_EVENTS } from './zookeeper-measure.js';

const [servers = '', path = '', mode = '', amount = ''] = process.argv.slice(2);

async function main(): Promise<void> {
  const zk = connect({ servers });
  await zk.connected();
  if (mode === 'events') await measureEvents(zk, Number(amount));
  else {
    await measureClient(
      {
        create: (at, data) => zk.create(at, data),
        set: (at, data) => zk.set(at, data),
        get: (at) => zk.get(at),
        delete: (at) => zk.delete(at),
        setInTransaction: (at, data, times) =>
          zk.transaction(Array.from({ length: times }, (): TransactionOp => ({ type: 'set', path: at, data }))),
        close: () => zk.close(),
      },
      path,
      Number(mode),
      Number(amount),
    );
  }
}

async function measureEvents(zk: ZooKeeper, count: number): Promise<void> {
  let stop: (() => { perSecond: number; cpuPerOperation: number }) | undefined;
  let events = 0;
  await new Promise<void>((resolve) => {
    zk.watch(path, 'persistent', {
      onReset: () => process.stdout.write('ready\n'),
      onEvent: () => {
        stop ??= stopwatch(count);
        if (++events === count) resolve();
      },
    });
  });
  if (stop !== undefined) report({ operation: WATCH_EVENTS, inFlight: 100, ...stop() });
  await zk.close();
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  process.exitCode = 1;
});
