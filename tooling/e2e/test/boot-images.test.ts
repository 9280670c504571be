/**
 * Boot tests of real images of Debian by a real builder. `NODEPOOL_BOOT_IMAGES` names the folder of the images, which
 * `boot-images/make.sh` fills. Emulated machines take ten minutes each.
 */

import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { sleep, systemClock } from '@nodepool/core';
import { zooKeeperForTests } from '@nodepool/dev-zookeeper';
import { configFileOf, Program, programPath, writeDaemonConfig, zooKeeperServers } from '@nodepool/harness';
import { connect, isZooKeeperError } from '@nodepool/zookeeper';

const FOLDER = join(__dirname, '..', 'logs', 'boot-images');
const IMAGES = process.env['NODEPOOL_BOOT_IMAGES'] ?? '';
/** Time limits of a login, seconds; emulated machines of a busy host need most of it. */
const BOOT_SECONDS = Number(process.env['NODEPOOL_BOOT_SECONDS'] ?? 1800);
const LIMIT_MS = 4 * BOOT_SECONDS * 1000;

const itWithImages = IMAGES === '' ? it.skip : it;

itWithImages('a builder accepts images whose login answers, and rejects one without sshd', async () => {
  rmSync(FOLDER, { recursive: true, force: true });
  const server = await zooKeeperForTests();
  const names = ['good', 'late', 'no-sshd'].filter((name) => existsSync(join(IMAGES, `${name}.raw`)));
  const command = 'test "$(id -un)" = zuul && cat /etc/os-release';
  const config = {
    'zookeeper-servers': zooKeeperServers(server.servers),
    'images-dir': join(FOLDER, 'images'),
    'build-log-dir': join(FOLDER, 'build-logs'),
    diskimages: names.map((name) => ({
      ...{ name, formats: ['raw'], source: { path: join(IMAGES, `${name}.raw`) } },
      'boot-test': { timeout: BOOT_SECONDS, memory: 512, command, 'command-timeout': BOOT_SECONDS },
    })),
  };
  const target = { folder: FOLDER, name: 'builder', config };
  await writeDaemonConfig(target);
  const builder = await Program.start({
    name: 'builder',
    command: process.execPath,
    args: [programPath('nodepool-builder'), '-c', configFileOf(target), '--build-workers', '3'],
    logFile: join(FOLDER, 'builder.log'),
    cwd: FOLDER,
  });
  const zooKeeper = connect({ servers: server.servers });
  /** Returns the verdict on an image; undefined while there is none. */
  const verdictOf = async (name: string): Promise<string | undefined> => {
    for (const path of [`/nodepool/images/${name}/last-failure`, `/nodepool/images/${name}/builds`]) {
      try {
        if (path.endsWith('last-failure')) {
          const { data } = await zooKeeper.get(path);
          return (JSON.parse(Buffer.from(data).toString()) as { reason: string }).reason;
        }
        for (const build of (await zooKeeper.children(path)).children.filter((each) => each !== 'lock')) {
          const { data } = await zooKeeper.get(`${path}/${build}`);
          const record = JSON.parse(Buffer.from(data).toString()) as { state: string; boot_tested?: boolean };
          if (record.state === 'ready' && record.boot_tested === true) return 'ready';
        }
      } catch (error) {
        if (!isZooKeeperError(error, 'no-node')) throw error;
      }
    }
    return undefined;
  };
  try {
    const verdicts = new Map<string, string>();
    await builder.while('tests the images', LIMIT_MS, async (signal) => {
      while (verdicts.size < names.length) {
        for (const name of names) {
          const verdict = await verdictOf(name);
          if (verdict !== undefined) verdicts.set(name, verdict);
        }
        await sleep(systemClock, 1000, signal);
      }
    });
    const expected = names.map((name) => [name, name === 'no-sshd' ? 'boot-test' : 'ready'] as const);
    expect(verdicts).toEqual(new Map(expected));
    const logs = readdirSync(join(FOLDER, 'build-logs')).filter((file) => file.startsWith('no-sshd-'));
    expect(readFileSync(join(FOLDER, 'build-logs', logs[0] ?? ''), 'utf8')).toContain('login:');
  } finally {
    await builder.kill();
    await zooKeeper.close();
    await server.stop();
  }
});
