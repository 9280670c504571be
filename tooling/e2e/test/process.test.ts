/** The programs as processes: signals at any time, closed output pipes, a missing chroot. */

import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { freePorts, startZooKeeper, type RunningZooKeeper } from '@nodepool/dev-zookeeper';
import {
  configFileOf,
  exampleConfig,
  programPath,
  startBuilder,
  startLauncher,
  writeDaemonConfig,
  type DaemonOptions,
  type Program,
} from '@nodepool/harness';
import { sleep, systemClock } from '@nodepool/core';

const WAIT_LIMIT_MS = 120_000;

let folder: string;
let programs: Program[];
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'nodepool-process-'));
  programs = [];
});
afterEach(async () => {
  await Promise.all(programs.splice(0).map((program) => program.kill()));
});
afterAll(() => rmSync(folder, { recursive: true, maxRetries: 20 }));

interface Started {
  readonly program: Program;
  readonly log: () => string;
  readonly says: (text: string) => Promise<void>;
  /** Changes the servers in the configuration file. */
  readonly setServers: (servers: string) => Promise<void>;
  /** Polls a page of the web endpoint until its text contains `text`; resolves with the status. */
  readonly shows: (path: string, text: string) => Promise<number>;
}

/** Starts a daemon that logs to a file of this test. */
async function start(
  kind: 'launcher' | 'builder',
  name: string,
  servers: string,
  images: object = {},
  process: Pick<DaemonOptions, 'args' | 'env'> = {},
): Promise<Started> {
  const [webappPort = 0] = await freePorts(1);
  const configWith = (address: string): object => ({
    ...exampleConfig({ zooKeeper: { servers: address }, webappPort, labels: ['small'] }),
    ...images,
  });
  const webArgs = kind === 'builder' ? ['--status-port', String(webappPort), '--status-address', '127.0.0.1'] : [];
  const options = {
    folder,
    name,
    config: configWith(servers),
    ...process,
    args: [...webArgs, ...(process.args ?? [])],
  };
  const program = await (kind === 'launcher' ? startLauncher(options) : startBuilder(options));
  programs.push(program);
  const log = (): string => readFileSync(program.logFile, 'utf8');
  const says = (text: string): Promise<void> =>
    program.while(`says "${text}"`, WAIT_LIMIT_MS, async (signal) => {
      while (!log().includes(text)) await sleep(systemClock, 50, signal);
    });
  const setServers = (address: string): Promise<void> =>
    writeDaemonConfig({ folder, name, config: configWith(address) });
  const shows = (path: string, text: string): Promise<number> =>
    program.while(`shows "${text}" at ${path}`, WAIT_LIMIT_MS, async (signal) => {
      for (;;) {
        try {
          const answer = await fetch(`http://127.0.0.1:${webappPort}${path}`, { signal });
          if ((await answer.text()).includes(text)) return answer.status;
        } catch (error) {
          // The endpoint does not listen yet.
          if (signal.aborted || !/fetch failed/.test(String(error))) throw error;
        }
        await sleep(systemClock, 50, signal);
      }
    });
  return { program, log, says, setServers, shows };
}

/** Returns the lines of a log that belong to the stack of an error. */
function stackLines(log: string): readonly string[] {
  return log.split('\n').filter((line) => /^\s+at /.test(line));
}

describe.each(['launcher', 'builder'] as const)('a %s that waits for ZooKeeper', (kind) => {
  it('survives SIGHUP and SIGUSR2, and stops cleanly on SIGUSR1 without opening the inspector', async () => {
    const [port = 0] = await freePorts(1);
    const { program, log, says } = await start(kind, `${kind}-waiting`, `127.0.0.1:${port}`);
    await says('ZooKeeper cannot be reached');
    program.signal('SIGHUP');
    await says('Reading the configuration again while waiting for ZooKeeper');
    program.signal('SIGUSR2');
    await says('The program is starting');
    program.signal('SIGUSR1');
    expect(await program.ends(WAIT_LIMIT_MS)).toEqual({ code: 0, signal: null });
    expect(log()).toMatch(/Stopping.*SIGUSR1/);
    expect(log()).not.toContain('Debugger listening');
  });

  it('shows the reason at its web endpoint, and stops on SIGTERM', async () => {
    const [port = 0] = await freePorts(1);
    const { program, shows, setServers } = await start(kind, `${kind}-page`, `127.0.0.1:${port}`);
    const reason = `not connected to ZooKeeper: 127.0.0.1:${port}, since `;
    expect(await shows('/', reason)).toBe(503);
    expect(await shows('/', 'ECONNREFUSED')).toBe(503);
    expect(await shows('/status/v1/overview', reason)).toBe(503);
    expect(await shows('/ready', `not ready: ${reason}`)).toBe(503);
    expect(await shows('/health', '"zookeeper":"connecting"')).toBe(200);
    expect(await shows('/metrics', 'nodepool_zookeeper_connected 0')).toBe(200);
    await writeDaemonConfig({ folder, name: program.name, config: 'labels: 7' });
    expect(await shows('/metrics', 'nodepool_configuration_problems 2')).toBe(200);
    await setServers(`127.0.0.1:${port}`);
    expect(await shows('/metrics', 'nodepool_configuration_problems 0')).toBe(200);
    program.signal('SIGTERM');
    expect(await program.ends(WAIT_LIMIT_MS)).toEqual({ code: 0, signal: null });
  });

  it('stops on SIGTERM while a server accepts connections and never answers', async () => {
    const silent = createServer(() => undefined);
    await new Promise<void>((resolve) => {
      silent.listen(0, '127.0.0.1', resolve);
    });
    const { port } = silent.address() as AddressInfo;
    const { program, shows } = await start(kind, `${kind}-silent`, `127.0.0.1:${port}`);
    expect(await shows('/ready', 'no server has answered yet')).toBe(503);
    program.signal('SIGTERM');
    expect(await program.ends(WAIT_LIMIT_MS)).toEqual({ code: 0, signal: null });
    silent.close();
  });

  it('reports the address of its web endpoint that another program uses', async () => {
    const [port = 0] = await freePorts(1);
    const used = createServer(() => undefined);
    await new Promise<void>((resolve) => {
      used.listen(0, '127.0.0.1', resolve);
    });
    const { port: usedPort } = used.address() as AddressInfo;
    const webapp = { listen_address: '127.0.0.1', port: usedPort };
    const args = kind === 'builder' ? ['--status-port', String(usedPort)] : [];
    const { program, log } = await start(kind, `${kind}-used`, `127.0.0.1:${port}`, { webapp }, { args });
    expect(await program.ends(WAIT_LIMIT_MS)).toEqual({ code: 1, signal: null });
    used.close();
    expect(log()).toMatch(/cannot start: the web endpoint cannot listen on 127\.0\.0\.1 port \d+: .*; choose others/);
    expect(stackLines(log())).toEqual([]);
  });
});

describe.each(['launcher', 'builder'] as const)('a %s that cannot start', (kind) => {
  /** Returns the log of the program, which does not need a ZooKeeper because it ends before it connects. */
  async function logOf(name: string, process: Pick<DaemonOptions, 'args' | 'env'>): Promise<string> {
    const { program, log } = await start(kind, `${kind}-${name}`, '127.0.0.1:1', {}, process);
    expect(await program.ends(WAIT_LIMIT_MS)).toEqual({ code: 1, signal: null });
    expect(stackLines(log())).toEqual([]);
    return log();
  }

  it('reports an invalid STATSD_PORT', async () => {
    expect(await logOf('statsd', { env: { STATSD_PORT: '8125x' } })).toContain(
      `nodepool-${kind} cannot start: the environment variable STATSD_PORT is "8125x"; set it to a port, 1 to 65535, or unset it\n`,
    );
  });

  it('reports a file for its process id that it cannot write, and leaves it alone', async () => {
    const missing = join(folder, 'missing', 'nodepool.pid');
    const remedy = 'name a file in an existing folder that this user can write, or omit the option\n';
    expect(await logOf('pid-missing', { args: ['--pidfile', missing] })).toMatch(
      new RegExp(
        `nodepool-${kind} cannot start: the file of --pidfile, ${missing}, cannot be written: its folder does not exist; ${remedy}`,
      ),
    );
    expect(await logOf('pid-folder', { args: ['--pidfile', folder] })).toMatch(
      new RegExp(`the file of --pidfile, ${folder}, cannot be written: it is a folder; ${remedy}`),
    );
  });
});

describe('programs with a ZooKeeper', () => {
  let zooKeeper: RunningZooKeeper;
  beforeAll(async () => {
    zooKeeper = await startZooKeeper();
  });
  afterAll(() => zooKeeper.stop());

  it.each(['launcher', 'builder'] as const)('a %s stops cleanly on SIGUSR1', async (kind) => {
    const images = { 'images-dir': join(folder, `images-of-${kind}`) };
    const { program, log, says } = await start(kind, `${kind}-serving`, zooKeeper.servers, images);
    await says('ZooKeeper is connected');
    program.signal('SIGHUP');
    program.signal('SIGUSR2');
    await says('CPU profile begins');
    program.signal('SIGUSR1');
    expect(await program.ends(WAIT_LIMIT_MS)).toEqual({ code: 0, signal: null });
    expect(log()).toMatch(/INFO nodepool: Stopped/);
    expect(log()).not.toContain('Debugger listening');
  });

  it.each([
    ['launcher', 'SIGHUP'],
    ['launcher', 'a changed file'],
    ['builder', 'SIGHUP'],
    ['builder', 'a changed file'],
  ] as const)('a %s uses a corrected address before its first connection, after %s', async (kind, cause) => {
    const [port = 0] = await freePorts(1);
    const name = `${kind}-corrected-${cause === 'SIGHUP' ? 'signal' : 'file'}`;
    const images = { 'images-dir': join(folder, `images-of-${name}`) };
    const { program, log, says, setServers, shows } = await start(kind, name, `127.0.0.1:${port}`, images);
    await shows('/ready', 'ECONNREFUSED');
    // A change that cannot be used does not end the program, either.
    await setServers(`${zooKeeper.servers}/no/such`);
    if (cause === 'SIGHUP') program.signal('SIGHUP');
    await shows('/ready', 'the chroot /no/such does not exist');
    await setServers(zooKeeper.servers);
    if (cause === 'SIGHUP') program.signal('SIGHUP');
    await says('ZooKeeper is connected');
    expect(await shows('/health', '"zookeeper":"connected"')).toBe(200);
    expect(await shows('/metrics', 'nodepool_zookeeper_connected 1')).toBe(200);
    program.signal('SIGTERM');
    expect(await program.ends(WAIT_LIMIT_MS)).toEqual({ code: 0, signal: null });
    expect(log()).not.toContain('Changed settings take effect at the next start');
    expect(stackLines(log())).toEqual([]);
  });

  it.each(['launcher', 'builder'] as const)('a %s reports a missing chroot with the remedy', async (kind) => {
    const { program, log } = await start(kind, `${kind}-chroot`, `${zooKeeper.servers}/no/such`);
    expect(await program.ends(WAIT_LIMIT_MS)).toEqual({ code: 1, signal: null });
    expect(log()).toContain('the chroot /no/such does not exist in ZooKeeper');
    expect(log()).toContain('create /no, create /no/such');
    expect(stackLines(log())).toEqual([]);
    expect(log().match(/does not exist in ZooKeeper/g)).toHaveLength(1);
  });

  it.each(['launcher', 'builder'] as const)('a %s reports an unreadable certificate', async (kind) => {
    const { program, log } = await start(kind, `${kind}-tls`, zooKeeper.servers, {
      'zookeeper-tls': { cert: '/no/such.pem', key: '/no/such.key', ca: '/no/ca.pem' },
    });
    expect(await program.ends(WAIT_LIMIT_MS)).toEqual({ code: 1, signal: null });
    expect(log()).toContain(`nodepool-${kind} cannot start: zookeeper-tls.cert: cannot read /no/such.pem`);
    expect(stackLines(log())).toEqual([]);
  });

  it('a builder reports a missing images folder', async () => {
    const { program, log } = await start('builder', 'builder-folder', zooKeeper.servers);
    expect(await program.ends(WAIT_LIMIT_MS)).toEqual({ code: 1, signal: null });
    expect(log()).toContain('nodepool-builder cannot start: images-dir is not in the configuration');
    expect(stackLines(log())).toEqual([]);
  });

  it('a launcher reports the address that another program uses', async () => {
    const [, port = ''] = zooKeeper.servers.split(':');
    const webapp = { listen_address: '127.0.0.1', port: Number(port) };
    const { program, log } = await start('launcher', 'launcher-port', zooKeeper.servers, { webapp });
    expect(await program.ends(WAIT_LIMIT_MS)).toEqual({ code: 1, signal: null });
    expect(log()).toMatch(/nodepool-launcher cannot start: the web endpoint cannot listen on 127\.0\.0\.1 port \d+/);
    expect(stackLines(log())).toEqual([]);
  });

  it.each(['launcher', 'builder'] as const)(
    'a %s loads a driver that is installed later, and requests a restart after the upgrade of another',
    async (kind) => {
      const example = dirname(dirname(programPath('nodepool-example-cloud')));
      const installDriver = (name: string, version: string): void => {
        const driverFolder = join(folder, `${kind}-${name}`);
        mkdirSync(driverFolder, { recursive: true });
        const manifest = { name: `acme-${name}`, version, main: './index.cjs', nodepool: { driver: name, api: 1 } };
        writeFileSync(join(driverFolder, 'package.json'), JSON.stringify(manifest));
        writeFileSync(
          join(driverFolder, 'index.cjs'),
          `exports.driver = Object.assign(require(${JSON.stringify(example)}).exampleDriver(), { name: '${name}' });`,
        );
      };
      installDriver('upgraded', '1.2.3');
      const names = ['upgraded', 'late'];
      const { program, log, says } = await start(kind, `${kind}-drivers`, zooKeeper.servers, {
        'images-dir': join(folder, `images-of-${kind}`),
        drivers: names.map((name) => ({ name, package: `./${kind}-${name}` })),
        providers: names.map((name) => ({ name: `with-${name}`, driver: name, cloud: {}, pools: [] })),
      });
      await says('there is no package in');
      await says('ZooKeeper is connected');
      installDriver('upgraded', '1.3.0');
      installDriver('late', '1.0.0');
      program.signal('SIGHUP');
      await says('version 1.3.0 of acme-upgraded is installed, and 1.2.3 runs; restart the program to use 1.3.0');
      if (kind === 'launcher') await says('Using driver  driver=late');
      program.signal('SIGTERM');
      expect(await program.ends(WAIT_LIMIT_MS)).toEqual({ code: 0, signal: null });
      expect(log().match(/1\.2\.3 runs; restart/g)).toHaveLength(1);
    },
  );

  it('a launcher reports the driver that blocks its event loop, also when its session expires', async () => {
    const driverFolder = join(folder, 'sleepy-driver');
    mkdirSync(driverFolder);
    const nodepool = { driver: 'sleepy', api: 1 };
    const manifest = { name: 'nodepool-driver-sleepy', version: '1.0.0', main: './index.cjs', nodepool };
    writeFileSync(join(driverFolder, 'package.json'), JSON.stringify(manifest));
    writeFileSync(
      join(driverFolder, 'index.cjs'),
      sleepyDriver(dirname(dirname(programPath('nodepool-example-cloud')))),
    );
    const { program, log, says } = await start('launcher', 'blocked', zooKeeper.servers, {
      'zookeeper-timeout': 4,
      drivers: [{ name: 'sleepy', package: './sleepy-driver' }],
      providers: [{ name: 'slow', driver: 'sleepy', cloud: {}, pools: [] }],
    });
    await says('A driver blocked the event loop');
    const [line = ''] = log()
      .split('\n')
      .filter((each) => each.includes('A driver blocked the event loop'));
    expect(line).toMatch(/driver=sleepy.*parseEverything \(.*\/sleepy-driver\/index\.cjs:\d+\)/);
    await says('session=new');
    program.signal('SIGTERM');
    expect(await program.ends(WAIT_LIMIT_MS)).toEqual({ code: 0, signal: null });
  });

  it('the command line reports a missing chroot and the remedy', async () => {
    await start('launcher', 'cli-chroot', `${zooKeeper.servers}/no/such`);
    const config = configFileOf({ folder, name: 'cli-chroot' });
    const { code, stderr } = await run(process.execPath, [
      programPath('nodepool'),
      ...['-c', config, '--connect-timeout', '300', 'list'],
    ]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^nodepool: the chroot \/no\/such does not exist .*create \/no, create \/no\/such\n$/);
  });
});

describe.each(['nodepool-launcher', 'nodepool-builder', 'nodepool', 'nodepool-example-cloud'] as const)(
  '%s --help',
  (name) => {
    it.each(['', '2>&1'])('ends without an error when its output %s is not read', async (redirection) => {
      const command = `set -o pipefail; '${process.execPath}' '${programPath(name)}' --help ${redirection} | true`;
      expect(await run('bash', ['-c', command])).toEqual({ code: 0, stderr: '' });
    });
  },
);

/** The example driver, except that its providers block the event loop for 6 s when they start, after a wait. */
function sleepyDriver(example: string): string {
  return `
    const { exampleDriver } = require(${JSON.stringify(example)});
    const driver = exampleDriver();
    const nothing = new Int32Array(new SharedArrayBuffer(4));
    function parseEverything() {
      const end = Date.now() + 6000;
      while (Date.now() < end) Atomics.wait(nothing, 0, 0, 10);
    }
    exports.driver = Object.assign(Object.create(driver), {
      name: 'sleepy',
      getProvider(config) {
        const provider = driver.getProvider(config);
        const start = provider.start.bind(provider);
        provider.start = async (context) => {
          await start(context);
          await new Promise((resolve) => setTimeout(resolve, 100));
          parseEverything();
        };
        return provider;
      },
    });
  `;
}

function run(command: string, args: readonly string[]): Promise<{ readonly code: number; readonly stderr: string }> {
  return new Promise((resolve) => {
    execFile(command, args, (error, _stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), stderr });
    });
  });
}
