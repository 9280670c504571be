/** The programs as processes: signals at any time, closed output pipes, a missing chroot. */

import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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
afterAll(() => rmSync(folder, { recursive: true }));

/** Starts a daemon that logs to a file of this test. */
async function start(
  kind: 'launcher' | 'builder',
  name: string,
  servers: string,
  images: object = {},
  process: Pick<DaemonOptions, 'args' | 'env'> = {},
): Promise<{ readonly program: Program; readonly log: () => string; readonly says: (text: string) => Promise<void> }> {
  const [webappPort = 0] = await freePorts(1);
  const config = { ...exampleConfig({ zooKeeper: { servers }, webappPort, labels: ['small'] }), ...images };
  const options = { folder, name, config, ...process };
  const program = await (kind === 'launcher' ? startLauncher(options) : startBuilder(options));
  programs.push(program);
  const log = (): string => readFileSync(program.logFile, 'utf8');
  const says = (text: string): Promise<void> =>
    program.while(`says "${text}"`, WAIT_LIMIT_MS, async (signal) => {
      while (!log().includes(text)) await sleep(systemClock, 50, signal);
    });
  return { program, log, says };
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
    await says('the configuration will be read again after that');
    program.signal('SIGUSR2');
    await says('The program is starting');
    program.signal('SIGUSR1');
    expect(await program.ends(WAIT_LIMIT_MS)).toEqual({ code: 0, signal: null });
    expect(log()).toMatch(/Stopping.*SIGUSR1/);
    expect(log()).not.toContain('Debugger listening');
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
        `nodepool-${kind} cannot start: the file of --pidfile, ${missing}, cannot be written: ENOENT.*; ${remedy}`,
      ),
    );
    expect(await logOf('pid-folder', { args: ['--pidfile', folder] })).toMatch(
      new RegExp(`the file of --pidfile, ${folder}, cannot be written: EISDIR.*; ${remedy}`),
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
