/** The ZooKeeper server of a test file: one that the environment names, or a new one. */

import { randomUUID } from 'node:crypto';
import { RawClient } from './raw-client.js';
import { startZooKeeper, type StartOptions } from './zookeeper.js';

export interface ZooKeeperForTests {
  /** `host:port,…/chroot`. No other process uses the chroot. */
  readonly servers: string;
  /** Removes what the tests left behind, and the server if it was started for them. */
  stop(): Promise<void>;
}

/**
 * Uses the servers of the environment variable `ZOOKEEPER_SERVERS` (`host:port,…`, without TLS and chroot), or starts
 * one. Starts an ensemble if the options request one. Call it in `beforeAll`, and `stop` in `afterAll`.
 */
export async function zooKeeperForTests(options: StartOptions = {}): Promise<ZooKeeperForTests> {
  const named = (options.ensembleSize ?? 1) > 1 ? '' : (process.env['ZOOKEEPER_SERVERS'] ?? '');
  const started = named === '' ? await startZooKeeper(options) : undefined;
  const servers = started?.servers ?? named;
  const chroot = `/test-${randomUUID()}`;
  await withClient(servers, (client) => client.create(chroot));
  return {
    servers: servers + chroot,
    async stop() {
      if (started !== undefined) await started.stop();
      else await withClient(servers, (client) => client.deleteAll(chroot));
    },
  };
}

async function withClient(servers: string, work: (client: RawClient) => Promise<void>): Promise<void> {
  const client = await RawClient.connect(servers);
  try {
    await work(client);
    await client.close();
  } finally {
    client.destroy();
  }
}
