/** The start of a daemon, and its end if it cannot start. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { VirtualClock } from '@nodepool/core/testing';
import { runDaemon } from '@nodepool/daemon';
import { SimulatedZooKeeperServer } from '@nodepool/zookeeper/simulated';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'run-daemon-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

it('a daemon that cannot be created closes its connection, which would keep the process alive', async () => {
  const config = join(folder, 'nodepool.yaml');
  writeFileSync(config, 'zookeeper-servers: [{host: zk1}]');
  const logging = join(folder, 'logging.yaml');
  writeFileSync(logging, 'version: 1');
  const zooKeeper = new SimulatedZooKeeperServer({ clock: new VirtualClock() }).connect({ sessionTimeoutMs: 4000 });
  const code = await runDaemon({
    name: 'nodepool-test',
    options: { config, secure: undefined, logging, debug: false, pidFile: undefined },
    signals: { deliverTo: () => undefined },
    stopMessage: 'Stopping',
    printError: () => undefined,
    connect: () => Promise.resolve(zooKeeper),
    webEndpoint: () => undefined,
    make: () => Promise.reject(new Error('a module is missing')),
  });
  expect(code).toBe(1);
  expect(zooKeeper.state).toBe('closed');
});
