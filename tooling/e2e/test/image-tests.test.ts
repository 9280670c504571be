/** Launch tests with real processes: the launcher runs a command on a node whose ssh server is OpenSSH. */

import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { configFileOf, programPath, type Program } from '@nodepool/harness';
import { ensurePath, sleep, systemClock } from '@nodepool/zookeeper';
import { Site } from './site.js';

const BUILDS = '/nodepool/images/debian/builds';
const DEADLINE_MS = 240_000;
const POLL_MS = 250;

const run = promisify(execFile);

let site: Site;
let launcher: Program;
let folder: string;
let key: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'nodepool-image-tests-'));
  key = join(folder, 'key');
  await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', key]);
  site = await Site.start();
  const cloud = { ssh: true, 'authorized-keys': `${key}.pub` };
  launcher = await site.launcher({ providers: [{ cloud, hostKeyChecking: true, username: userInfo().username }] });
});

afterAll(async () => {
  await site.stop();
  rmSync(folder, { recursive: true });
});

/** Gives the label `debian` a disk image whose uploads must pass the command. */
async function demand(command: string): Promise<void> {
  const file = configFileOf({ folder: site.folder, name: launcher.name });
  const config = JSON.parse(readFileSync(file, 'utf8')) as {
    diskimages: object[];
    providers: { diskimages: object[]; pools: { labels: { name: string }[] }[] }[];
  };
  const launchTest = { command, identity: key };
  config.diskimages = [{ name: 'debian', username: userInfo().username, 'launch-test': launchTest }];
  for (const provider of config.providers) {
    provider.diskimages = [{ name: 'debian' }];
    for (const pool of provider.pools) {
      pool.labels = pool.labels.map((label) =>
        label.name === 'debian' ? { name: 'debian', diskimage: 'debian' } : label,
      );
    }
  }
  await site.reconfigure(launcher, { config: JSON.stringify(config) });
}

/** Creates the record of an upload as a builder does. */
async function upload(build: string): Promise<void> {
  const common = {
    state_time: Date.now() / 1000,
    username: userInfo().username,
    python_path: 'auto',
    shell_type: null,
  };
  const parent = `${BUILDS}/${build}/providers/example/images`;
  await ensurePath(site.zooKeeper, parent);
  const put = async (path: string, record: object): Promise<void> => {
    await site.zooKeeper.set(path, Buffer.from(JSON.stringify({ ...common, ...record })));
  };
  await put(`${BUILDS}/${build}`, { state: 'ready', formats: 'raw', builder: 'b' });
  const review = { stage: 'uploaded', since: common.state_time, by: 'builder', reason: 'uploaded', history: [] };
  const record = {
    ...common,
    state: 'ready',
    external_id: `image-${build}`,
    external_name: build,
    format: 'raw',
    review,
  };
  await site.zooKeeper.create(`${parent}/0000000001`, Buffer.from(JSON.stringify(record)));
}

async function reviewOf(build: string): Promise<Readonly<Record<string, unknown>>> {
  const { data } = await site.zooKeeper.get(`${BUILDS}/${build}/providers/example/images/0000000001`);
  return (JSON.parse(Buffer.from(data).toString()) as { review: Readonly<Record<string, unknown>> }).review;
}

async function inStage(build: string, stage: string): Promise<void> {
  await launcher.while(`judges build ${build}`, DEADLINE_MS, async (signal) => {
    while ((await reviewOf(build))['stage'] !== stage) await sleep(systemClock, POLL_MS, signal);
  });
}

async function nodepool(...args: readonly string[]): Promise<string> {
  const config = configFileOf({ folder: site.folder, name: launcher.name });
  const { stdout, stderr } = await run(process.execPath, [programPath('nodepool'), '-c', config, ...args]);
  return stdout + stderr;
}

it('the command of a launch test runs on the node over ssh; its failure rejects the upload with the reason', async () => {
  const mark = join(folder, 'mark');
  await demand(`test -n "$SSH_CONNECTION" && touch ${mark}`);
  await upload('good');
  await inStage('good', 'promoted');
  expect(existsSync(mark)).toBe(true);
  await demand('echo no python >&2; exit 3');
  await upload('bad');
  await inStage('bad', 'rejected');
  expect((await reviewOf('bad'))['reason']).toBe('launch test: the command of the test ended with status 3: no python');
  expect(await nodepool('image-list', '--detail')).toMatch(/bad .* rejected .*no python/);
  expect(await nodepool('image', 'promote', 'debian', '--build', 'bad', '--reason', 'python is not needed')).toContain(
    'serves requests from now on',
  );
  expect(await nodepool('image', 'rollback', 'debian')).toContain('build good serves requests again');
  await site.clean(launcher);
});
