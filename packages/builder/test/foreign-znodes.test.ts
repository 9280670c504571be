/** Znodes that another program left below locks of images: builders log them, and continue once they are deleted. */

import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { silentLogger, type Logger } from '@nodepool/core';
import type { ZooKeeper } from '@nodepool/zookeeper';
import { World } from './support/world.js';

const SITE = { images: { debian: {} }, providers: { cloud: { images: ['debian'] } } };
const BUILDS = '/nodepool/images/debian/builds';

let world: World;
let zk: ZooKeeper;
/** The warnings of builders: message, and fields as JSON. */
let warnings: string[];
beforeEach(() => {
  world = new World();
  warnings = [];
  const log: Logger = {
    ...silentLogger,
    warn: (message, fields) => warnings.push(`${message} ${JSON.stringify(fields)}`),
    with: () => log,
    named: () => log,
  };
  world.log = log;
  zk = world.server.connect();
});
afterEach(async () => {
  await world.during(zk.close());
  expect(await world.end()).toEqual([]);
});

/** Creates the znode and its parents. */
async function create(path: string): Promise<string> {
  const paths = path.split('/').map((_, index, parts) => parts.slice(0, index + 1).join('/'));
  for (const each of paths.slice(1)) if (!world.paths().includes(each)) await world.during(zk.create(each));
  return path;
}

/** Advances ten minutes and expects few writes and one warning that names the foreign znode. */
async function expectFewWrites(foreign: string): Promise<void> {
  const before = world.server.lastZxid;
  await world.after(600_000);
  expect(world.server.lastZxid - before).toBeLessThan(20n);
  expect(warnings).toEqual([expect.stringContaining(foreign)]);
}

it('a foreign znode below the lock for building an image', async () => {
  const foreign = await create(`${BUILDS}/lock/notes`);
  await world.builder(SITE);
  await expectFewWrites(foreign);
  expect(world.builds('debian')).toEqual([]);
  await world.during(zk.delete(foreign));
  await world.until('it is built', () => world.readyBuilds('debian') === 1);
});

it.each([
  ['the lock of a build', (build: string) => `${BUILDS}/${build}/lock/notes`],
  ['the lock of an upload', (build: string) => `${BUILDS}/${build}/providers/cloud/images/0000000001/lock/notes`],
])('a foreign znode below %s', async (_, lockOf) => {
  await world.builder(SITE);
  await world.until('it is uploaded', () => world.readyUploads('debian', 'cloud') === 1);
  const [build] = world.builds('debian');
  const foreign = await create(lockOf(build?.id ?? ''));
  const path = `${BUILDS}/${build?.id ?? ''}`;
  const { data } = await world.during(zk.get(path));
  const record = Buffer.from(data).toString().replace('"ready"', '"deleting"');
  await world.during(zk.set(path, Buffer.from(record)));
  await world.until(
    'it is built again',
    () => world.readyUploads('debian', 'cloud') === 2 || world.builds('debian').length > 1,
  );
  await world.after(60_000);
  await expectFewWrites(foreign);
  expect(world.paths()).toContain(path);
  await world.during(zk.delete(foreign));
  await world.until('the build is deleted', () => !world.paths().includes(path));
});
