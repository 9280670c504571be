/** An ensemble of three servers behaves as one server: tests use leader and followers in turn, then together. */
import { describe, expect, it } from '@jest/globals';
import { connect, type ZooKeeper } from '../../src/index.js';
import { bytes, EventLog, outcomeOf, textOf, type Harness } from './harness.js';
import { RealFactory } from './real-factory.js';
import { describeZooKeeper } from './suite.js';

const factory = new RealFactory(3);

describeZooKeeper('an ensemble of three', factory, (harness) => {
  describe('clients of different servers', () => {
    it('read each other’s writes after a sync', async () => {
      await withClients(harness, async (clients) => {
        for (const [index, zk] of clients.entries()) {
          await zk.create(`/n${index}`, bytes(`${index}`));
          for (const other of clients) {
            await other.sync('/');
            expect(textOf((await other.get(`/n${index}`)).data)).toBe(`${index}`);
          }
        }
      });
    });

    it('get events of each other’s changes in the same order', async () => {
      await withClients(harness, async (clients) => {
        const logs = clients.map(() => new EventLog());
        for (const [index, zk] of clients.entries()) zk.watch('/', 'persistent-recursive', logs[index]!);
        await Promise.all(logs.map((log) => log.atLeast(1)));
        const created = await Promise.all(
          Array.from({ length: 150 }, (_, index) =>
            clients[index % 3]!.create('/n-', undefined, { mode: 'persistent-sequential' }),
          ),
        );
        const inOrder = [...created].sort((one, other) => (one.stat.czxid < other.stat.czxid ? -1 : 1));
        for (const log of logs) {
          expect((await log.atLeast(151)).slice(1)).toEqual(inOrder.map(({ path }) => `created ${path}`));
        }
      });
    });

    it('get sequence numbers without gaps and duplicates', async () => {
      await withClients(harness, async (clients) => {
        const created = await Promise.all(
          Array.from({ length: 90 }, (_, index) =>
            clients[index % 3]!.create('/n-', undefined, { mode: 'ephemeral-sequential' }),
          ),
        );
        const numbers = created.map(({ path }) => Number(path.slice(3))).sort((one, other) => one - other);
        expect(numbers).toEqual(created.map((_, index) => index));
      });
    });

    it('cannot both succeed in writing over the same version', async () => {
      await withClients(harness, async (clients) => {
        await clients[0]!.create('/a');
        await Promise.all(clients.map((zk) => zk.sync('/')));
        for (let version = 0; version < 20; version++) {
          const outcomes = await Promise.all(clients.map((zk) => outcomeOf(zk.set('/a', bytes(''), { version }))));
          expect([...outcomes].sort()).toEqual(['bad-version', 'bad-version', 'ok']);
        }
      });
    });

    it('no longer see the ephemeral znodes of a session that ended', async () => {
      await withClients(harness, async ([owner, ...others]) => {
        await owner!.create('/e', undefined, { mode: 'ephemeral' });
        const logs = others.map(() => new EventLog());
        for (const [index, zk] of others.entries()) {
          // Without it, the watch of a server that lags behind also reports the creation.
          await zk.sync('/e');
          zk.watch('/e', 'persistent', logs[index]!);
          await logs[index]!.atLeast(1);
        }
        await owner!.close();
        for (const log of logs) expect((await log.atLeast(2)).at(-1)).toBe('deleted /e');
      });
    });
  });
});

/** Connects one client per server, with the root of the test as its chroot. */
async function withClients(harness: Harness, work: (clients: readonly ZooKeeper[]) => Promise<void>): Promise<void> {
  const slash = factory.servers.indexOf('/');
  const chroot = factory.servers.slice(slash) + harness.root;
  const clients = factory.servers
    .slice(0, slash)
    .split(',')
    .map((servers) => connect({ servers, chroot }));
  try {
    await Promise.all(clients.map((zk) => zk.sync('/')));
    await work(clients);
  } finally {
    await Promise.all(clients.map((zk) => zk.close()));
  }
}
