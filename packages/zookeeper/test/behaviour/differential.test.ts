/**
 * Makes the same random calls, with watches and lost connections, at a real server and at the simulated one, and
 * compares the results. `SEED=100 SEEDS=50` selects other sequences.
 */

import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { ZooKeeper } from '../../src/index.js';
import type { ZooKeeperFactory } from './harness.js';
import { Log, makePlan, normalized, type Step } from './plan.js';
import { RealFactory } from './real-factory.js';
import { seeded } from './seeded.js';
import { SimulatedFactory } from './simulated-factory.js';

const STEPS = 120;
const FIRST_SEED = Number(process.env['SEED'] ?? 1);
const SEEDS = Array.from({ length: Number(process.env['SEEDS'] ?? 8) }, (_, index) => FIRST_SEED + index);
/** On average, one of this many steps is followed by a lost connection. */
const LOSS_EVERY = 40;

/** The observations of both clients. */
async function run(factory: ZooKeeperFactory, root: string, plan: readonly Step[]): Promise<unknown[][]> {
  const first = await factory.connect();
  await first.create(root);
  await first.close();
  const clients = [await factory.connect({ chroot: root }), await factory.connect({ chroot: root })];
  const logs = clients.map(() => new Log());
  const sessions = clients.map((client) => client.session?.id ?? 0n);
  for (const [index, { client, name, run: runStep }] of plan.entries()) {
    const zk = clients[client]!;
    await logs[client]!.outcome(name, runStep(zk, logs[client]!));
    // This answer arrives after the events of all earlier changes.
    for (const one of clients) await one.exists('/');
    if (index % LOSS_EVERY === LOSS_EVERY - 1) {
      await missing(factory, zk, () => clients[1 - client]!.exists('/'));
      await missing(factory, zk, async () => {
        const other = clients[1 - client]!;
        await logs[1 - client]!.outcome('set meanwhile', other.set('/a', Buffer.from('meanwhile')));
        await logs[1 - client]!.outcome('delete meanwhile', other.delete('/a/c'));
      });
    }
  }
  await Promise.all(clients.map((client) => client.close()));
  const all = normalized(
    logs.map(({ lines }) => lines),
    sessions,
  );
  return all as unknown[][];
}

async function missing(factory: ZooKeeperFactory, zk: ZooKeeper, work: () => Promise<unknown>): Promise<void> {
  const resumed = new Promise<void>((resolve) => {
    const listener = (): void => {
      zk.off('resumed', listener);
      resolve();
    };
    zk.on('resumed', listener);
  });
  const heal = factory.isolate(zk);
  await work();
  heal();
  await resumed;
  // Missed events arrive before this answer.
  await zk.exists('/');
}

describe('the simulated server and a real one', () => {
  const real = new RealFactory();
  const simulated = new SimulatedFactory();
  beforeAll(async () => {
    await Promise.all([real.start(), simulated.start()]);
  });
  afterAll(async () => {
    await Promise.all([real.stop(), simulated.stop()]);
  });

  it.each(SEEDS)('send the same answers and events with seed %d', async (seed) => {
    const plan = makePlan(seeded(seed), STEPS);
    const [expected, actual] = await Promise.all([
      run(real, `/seed-${seed}`, plan),
      run(simulated, `/seed-${seed}`, plan),
    ]);
    expect(actual[0]).toEqual(expected[0]);
    expect(actual[1]).toEqual(expected[1]);
    expect(expected.flat().length).toBeGreaterThan(STEPS);
  });
});
