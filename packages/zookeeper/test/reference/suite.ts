/**
 * Runs the behaviour suite with the npm package `zookeeper` as an independent reference (`pnpm --filter
 * @nodepool/zookeeper test:reference`). Separate from the other tests, because the package must be compiled and may
 * abort the process.
 */
import { describe, expect, it } from '@jest/globals';
import { zooKeeperForTests, type ZooKeeperForTests } from '@nodepool/dev-zookeeper';
import type { PlainFactory, PlainZooKeeper, TestClientOptions } from '../behaviour/harness.js';
import { describeReference } from '../behaviour/suite.js';
import { isInstalled, NpmClient } from './npm-client.js';

class NpmFactory implements PlainFactory<PlainZooKeeper> {
  private zooKeeper: ZooKeeperForTests | undefined;

  async start(): Promise<void> {
    this.zooKeeper = await zooKeeperForTests({ tickTime: 500 });
  }

  async stop(): Promise<void> {
    await this.zooKeeper?.stop();
  }

  async connect(options: TestClientOptions = {}): Promise<PlainZooKeeper> {
    if (this.zooKeeper === undefined) throw new Error('start it first');
    const client = await NpmClient.connect(
      this.zooKeeper.servers + (options.chroot ?? ''),
      options.sessionTimeoutMs ?? 10_000,
    );
    for (const { scheme, auth } of options.auth ?? []) await client.authenticate(scheme, auth);
    return client;
  }
}

if (isInstalled) {
  describeReference('the npm package zookeeper, at a real server', new NpmFactory(), { refusedGetAcl: true });
} else {
  describe('the npm package zookeeper', () => {
    it.skip('is skipped because it is not installed; run tooling/zookeeper-reference/install.sh', () => {
      expect(isInstalled).toBe(true);
    });
  });
}
