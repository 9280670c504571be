/**
 * The builder in operation: the built program, a stand-in for disk-image-create, and an example cloud in a separate
 * process.
 */

import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { freePorts, zooKeeperForTests, type ZooKeeperForTests } from '@nodepool/dev-zookeeper';
import { FAKE_DIB_COMMAND, type FakeDibMode } from '@nodepool/fake-dib';
import { Program, programPath, startBuilder, writeDaemonConfig, zooKeeperServers } from '@nodepool/harness';
import { connect, isZooKeeperError, type ZooKeeper } from '@nodepool/zookeeper';
import { sleep, systemClock } from '@nodepool/core';

const LOGS = join(__dirname, '..', 'logs');
const IMAGES = '/nodepool/images';
/** Session timeout in seconds: short, so that locks of a killed builder are released soon. */
const SESSION_TIMEOUT_S = 4;
const WAIT_LIMIT_MS = 240_000;

interface Fields {
  readonly id: string;
  readonly [name: string]: unknown;
}

let server: ZooKeeperForTests;
let zooKeeper: ZooKeeper;
let folder: string;
let cloud: Program;
let endpoint: string;
const programs: Program[] = [];

beforeEach(async () => {
  const name = (expect.getState().currentTestName ?? '').replace(/[^A-Za-z0-9]+/g, '-').slice(0, 80);
  folder = join(LOGS, name);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  // Short ticks, so that sessions of killed processes expire soon.
  server = await zooKeeperForTests({ tickTime: 500 });
  zooKeeper = connect({ servers: server.servers });
  await zooKeeper.connected({ timeoutMs: WAIT_LIMIT_MS });
  const [port] = await freePorts(1);
  endpoint = `http://127.0.0.1:${port ?? 0}`;
  cloud = await Program.start({
    name: 'cloud',
    command: process.execPath,
    args: [programPath('nodepool-example-cloud'), '--port', String(port)],
    logFile: join(folder, 'cloud.log'),
  });
  programs.push(cloud);
});

afterEach(async () => {
  for (const program of programs.splice(0)) await program.kill();
  await zooKeeper.close();
  await server.stop();
});

function config(mode: FakeDibMode, more: Readonly<Record<string, unknown>> = {}): object {
  return {
    'zookeeper-servers': zooKeeperServers(server.servers),
    'zookeeper-timeout': SESSION_TIMEOUT_S,
    'images-dir': join(folder, 'images'),
    'build-log-dir': join(folder, 'build-logs'),
    labels: [{ name: 'debian' }],
    diskimages: [
      {
        name: 'debian',
        'dib-cmd': FAKE_DIB_COMMAND,
        elements: ['debian-minimal'],
        'env-vars': { FAKE_DIB: mode },
        ...more,
      },
    ],
    providers: [
      {
        name: 'example',
        driver: 'example',
        endpoint,
        'image-format': 'qcow2',
        diskimages: [{ name: 'debian' }],
        pools: [{ name: 'main', labels: [{ name: 'debian', diskimage: 'debian' }] }],
      },
    ],
  };
}

async function builder(mode: FakeDibMode, more: Readonly<Record<string, unknown>> = {}): Promise<Program> {
  const program = await startBuilder({ folder, config: config(mode, more) });
  programs.push(program);
  return program;
}

async function childrenOf(path: string): Promise<readonly string[]> {
  try {
    return (await zooKeeper.children(path)).children.filter((name) => name !== 'lock');
  } catch (error) {
    if (isZooKeeperError(error, 'no-node')) return [];
    throw error;
  }
}

async function records(parent: string): Promise<Fields[]> {
  const found: Fields[] = [];
  for (const id of await childrenOf(parent)) {
    try {
      const { data } = await zooKeeper.get(`${parent}/${id}`);
      found.push({ ...(JSON.parse(Buffer.from(data).toString()) as Record<string, unknown>), id });
    } catch (error) {
      if (!isZooKeeperError(error, 'no-node')) throw error;
    }
  }
  return found;
}

const builds = (): Promise<Fields[]> => records(`${IMAGES}/debian/builds`);

async function uploads(): Promise<Fields[]> {
  const all: Fields[] = [];
  for (const { id } of await builds()) {
    all.push(...(await records(`${IMAGES}/debian/builds/${id}/providers/example/images`)));
  }
  return all;
}

const inState = (state: string, found: readonly Fields[]): number =>
  found.filter((record) => record['state'] === state).length;

/** Polls until `holds` returns true. Rejects if the program ends before. */
async function until(program: Program, what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  await program.while(what, WAIT_LIMIT_MS, async (signal) => {
    while (!(await holds())) await sleep(systemClock, 50, signal);
  });
}

const logOf = (program: Program): string => readFileSync(program.logFile, 'utf8');

/** Returns the names of the images in the cloud. */
async function cloudImages(): Promise<readonly string[]> {
  const answer = await fetch(`${endpoint}/v1/images`, { signal: AbortSignal.timeout(10_000) });
  const page = (await answer.json()) as { readonly items: readonly { readonly name: string }[] };
  return page.items.map(({ name }) => name);
}

/** Counts the processes of this test's builds, which have its folder in their environment. */
function processesOfBuilds(): number {
  const environments = readdirSync('/proc')
    .filter((name) => /^[0-9]+$/.test(name))
    .map((pid) => readIfThere(`/proc/${pid}/environ`));
  return environments.filter((text) => text.includes(`DIB_IMAGE_FILENAME=${folder}/`)).length;
}

function readIfThere(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

describe('nodepool-builder', () => {
  it('builds, uploads, stops on a signal, and finds all its work after a restart', async () => {
    const first = await builder('works');
    await until(first, 'the image is uploaded', async () => inState('ready', await uploads()) === 1);
    const [build] = await builds();
    expect(build).toMatchObject({ state: 'ready', formats: 'qcow2' });
    expect(build?.['builder_id']).toBe(readFileSync(join(folder, 'images', 'builder_id.txt'), 'utf8'));
    expect(readdirSync(join(folder, 'build-logs'))).toEqual([`debian-${build?.id ?? ''}.log`]);
    expect(await childrenOf('/nodepool/components/builder')).toHaveLength(1);
    expect(await first.stop()).toEqual({ code: 0, signal: null });
    expect(await childrenOf('/nodepool/components/builder')).toHaveLength(0);

    const second = await builder('works');
    await until(second, 'it is back', async () => (await childrenOf('/nodepool/components/builder')).length === 1);
    await until(second, 'its provider is ready', () => logOf(second).split('Provider is ready').length === 3);
    expect(await builds()).toHaveLength(1);
    expect(await cloudImages()).toHaveLength(1);
  });

  it('finishes a build after the first signal, and aborts it after the second', async () => {
    const program = await builder('hangs');
    await until(program, 'it builds', async () => inState('building', await builds()) === 1);
    await until(program, 'the command runs', () => logOf(program).includes('Running the build'));
    program.signal('SIGTERM');
    await until(program, 'it says what it waits for', () =>
      logOf(program).includes('waiting for running builds and uploads'),
    );
    program.signal('SIGTERM');
    expect(await program.ends(WAIT_LIMIT_MS)).toEqual({ code: 0, signal: null });
    expect(inState('failed', await builds())).toBe(1);
  });

  it('leaves no processes or records when it is killed during a build', async () => {
    const killed = await builder('hangs');
    await until(killed, 'it builds', async () => inState('building', await builds()) === 1);
    const [lost] = await builds();
    await killed.kill();
    while (processesOfBuilds() > 0) await sleep(systemClock, 50);
    const next = await builder('works');
    await until(next, 'the image is uploaded', async () => inState('ready', await uploads()) === 1);
    await until(next, 'the lost build is gone', async () => (await builds()).every(({ id }) => id !== lost?.id));
    expect(await builds()).toHaveLength(1);
  });

  it('applies a changed configuration, rejects an invalid one, and logs the running work', async () => {
    const program = await builder('fails');
    await until(program, 'the build fails', () => logOf(program).includes('An image could not be built'));
    await writeDaemonConfig({ folder, name: 'builder', config: { ...config('works'), nonsense: true } });
    await until(program, 'it is refused', () => logOf(program).includes('configuration is refused'));
    await writeDaemonConfig({ folder, name: 'builder', config: config('works') });
    program.signal('SIGHUP');
    await until(program, 'it is taken up', () => logOf(program).includes('Applying the changed configuration'));
    await zooKeeper.create(`${IMAGES}/debian/request-build`, undefined);
    await until(program, 'the image is uploaded', async () => inState('ready', await uploads()) === 1);
    program.signal('SIGUSR2');
    await until(program, 'it says what runs', () => logOf(program).includes('Stack dump ends'));
    expect(await program.stop()).toEqual({ code: 0, signal: null });
    expect(readdirSync(folder).some((name) => name.endsWith('.cpuprofile'))).toBe(true);
  });

  it('does not start without a usable images folder, and reports the reason', async () => {
    const program = await startBuilder({
      folder,
      config: { ...config('works'), 'images-dir': '/dev/null/images' },
    });
    programs.push(program);
    expect(await program.ends(WAIT_LIMIT_MS)).toEqual({ code: 1, signal: null });
    expect(program.logTail()).toContain('images-dir');
  });
});
