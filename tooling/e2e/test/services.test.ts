/**
 * The systemd units of the documentation: verified by systemd, and started, reloaded and stopped in the same way. Tests
 * have no service manager, so this test sets up directories, environment and privileges according to the unit.
 */

import { execFile } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { freePorts, zooKeeperForTests, type ZooKeeperForTests } from '@nodepool/dev-zookeeper';
import { exampleConfig, Program, programPath } from '@nodepool/harness';
import { sleep, systemClock } from '@nodepool/core';

const execute = promisify(execFile);
const EXAMPLES = join(__dirname, '..', '..', '..', 'docs', 'examples');
const WAIT_LIMIT_MS = 120_000;
const PROGRAMS = ['nodepool-launcher', 'nodepool-builder'] as const;

/** The settings of the section `Service`, each with its values in order. */
type Unit = ReadonlyMap<string, readonly string[]>;

function serviceOf(name: string): Unit {
  const text = readFileSync(join(EXAMPLES, `${name}.service`), 'utf8');
  const [section = ''] = text.split('[Service]\n')[1]?.split(/^\[/m) ?? [];
  const settings = new Map<string, string[]>();
  for (const [, key = '', value = ''] of section.matchAll(/^(\w+)=(.*)$/gm)) {
    settings.set(key, [...(settings.get(key) ?? []), value]);
  }
  return settings;
}

let zooKeeper: ZooKeeperForTests;
let root: string;
const running: Program[] = [];

beforeAll(async () => {
  zooKeeper = await zooKeeperForTests();
  root = mkdtempSync(join(tmpdir(), 'nodepool-services-'));
  for (const program of PROGRAMS) {
    const place = join(root, 'opt/nodepool/node_modules/.bin', program);
    mkdirSync(dirname(place), { recursive: true });
    symlinkSync(programPath(program), place);
    // npm does this when it installs a package.
    chmodSync(place, 0o755);
  }
});

afterEach(async () => {
  await Promise.all(running.splice(0).map((program) => program.kill()));
});

afterAll(async () => {
  await zooKeeper.stop();
  rmSync(root, { recursive: true });
});

/** Returns the path below the root of the test. */
const below = (path: string): string => join(root, path);

/** Splits a command line as systemd does, with `$NAME` for a list of words. */
function words(line: string, env: Readonly<Record<string, string>>): string[] {
  return line.split(/\s+/).flatMap((word) => {
    const [, name] = /^\$(\w+)$/.exec(word) ?? [];
    if (name === undefined) return [word.startsWith('/opt/') || word.startsWith('/etc/') ? below(word) : word];
    return (env[name] ?? '').split(/\s+/).filter((part) => part !== '');
  });
}

interface Service {
  readonly program: Program;
  readonly unit: Unit;
  readonly port: number;
  says(text: string): Promise<void>;
}

/** Starts the program according to the unit. `defaults` is the content of its file in `/etc/default`. */
async function start(name: (typeof PROGRAMS)[number], defaults: string): Promise<Service> {
  const unit = serviceOf(name);
  const [port = 0] = await freePorts(1);
  const config = {
    ...exampleConfig({ zooKeeper, webappPort: port, labels: ['small'] }),
    'images-dir': below('images'),
  };
  writeFile(below('/etc/nodepool/nodepool.yaml'), JSON.stringify(config));
  writeFile(below('/etc/nodepool/secure.yaml'), '{}');
  writeFile(below(`/etc/default/${name}`), defaults);
  const state = below(join('/var/lib', unit.get('StateDirectory')?.[0] ?? ''));
  const logs = below(join('/var/log', unit.get('LogsDirectory')?.[0] ?? ''));
  for (const folder of [state, logs, below('images')]) mkdirSync(folder, { recursive: true });
  const files = (unit.get('EnvironmentFile') ?? []).map((file) => readFileSync(below(file.replace(/^-/, '')), 'utf8'));
  const env = environment([...(unit.get('Environment') ?? []), ...files.flatMap((text) => text.split('\n'))]);
  const [command = '', ...args] = words(unit.get('ExecStart')?.[0] ?? '', env);
  const privileges = unit.get('NoNewPrivileges')?.[0] === 'yes' ? ['setpriv', '--no-new-privs', '--'] : [];
  const mask = `umask ${unit.get('UMask')?.[0] ?? '0022'}; exec "$@"`;
  const program = await Program.start({
    name,
    command: '/bin/sh',
    args: ['-ec', mask, 'sh', ...privileges, command, ...args],
    logFile: below(`${name}-${port}.log`),
    cwd: below(unit.get('WorkingDirectory')?.[0] ?? ''),
    env: { ...env, STATE_DIRECTORY: state, LOGS_DIRECTORY: logs },
  });
  running.push(program);
  const says = (text: string): Promise<void> =>
    program.while(`says "${text}"`, WAIT_LIMIT_MS, async (signal) => {
      while (!readFileSync(program.logFile, 'utf8').includes(text)) await sleep(systemClock, 50, signal);
    });
  return { program, unit, port, says };
}

function writeFile(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

function environment(lines: readonly string[]): Record<string, string> {
  const assignments = lines.flatMap((line) => {
    const [, key, value] = /^(\w+)=(.*)$/.exec(line) ?? [];
    return key === undefined || value === undefined ? [] : [[key, value] as const];
  });
  return Object.fromEntries(assignments);
}

async function reload({ unit, program }: Service): Promise<void> {
  const [command = '', ...args] = words(unit.get('ExecReload')?.[0] ?? '', { MAINPID: String(program.pid) });
  await execute(command, args);
}

/** Stops the program with systemd's default signal. */
async function stop({ program, unit }: Service): Promise<void> {
  expect(unit.has('KillSignal')).toBe(false);
  program.signal('SIGTERM');
  expect(await program.ends(WAIT_LIMIT_MS)).toEqual({ code: 0, signal: null });
}

it.each(PROGRAMS)('systemd accepts the unit of %s', async (name) => {
  // A separate root with stand-ins for the programs, because systemd does not follow links out of the root.
  const site = join(root, 'verify');
  for (const file of [`opt/nodepool/node_modules/.bin/${name}`, 'bin/kill']) {
    writeFile(join(site, file), '#!/bin/sh\n');
    chmodSync(join(site, file), 0o755);
  }
  writeFile(join(site, `etc/systemd/system/${name}.service`), readFileSync(join(EXAMPLES, `${name}.service`), 'utf8'));
  const check = ['verify', '--man=no', '--recursive-errors=no', `--root=${site}`, `${name}.service`];
  await expect(execute('systemd-analyze', check)).resolves.toEqual({ stdout: '', stderr: '' });
});

describe('the unit', () => {
  it('runs a launcher that serves, rejects an invalid configuration on reload, and stops cleanly', async () => {
    const defaults = '# Settings\nOPTIONS=-s /etc/nodepool/secure.yaml --debug\nNODEPOOL_SITE=test\n';
    const service = await start('nodepool-launcher', defaults.replaceAll('/etc/', `${root}/etc/`));
    await service.says('Web endpoint listens');
    const url = `http://127.0.0.1:${service.port}/ready`;
    await service.program.while('is ready', WAIT_LIMIT_MS, async (signal) => {
      while (!(await fetch(url, { signal })).ok) await sleep(systemClock, 100, signal);
    });
    const status = readFileSync(`/proc/${service.program.pid}/status`, 'utf8');
    expect(status).toMatch(/^NoNewPrivs:\t1$/m);
    writeFileSync(below('/etc/nodepool/nodepool.yaml'), 'colour: red\n');
    await reload(service);
    await service.says('The changed configuration is refused; the previous one stays in force');
    await stop(service);
  });

  it('runs a builder without options and environment, which survives a reload, and stops cleanly', async () => {
    const service = await start('nodepool-builder', '');
    await service.says('ZooKeeper is connected');
    await service.program.while('has its id', WAIT_LIMIT_MS, async (signal) => {
      while (!existsSync(below('images/builder_id.txt'))) await sleep(systemClock, 50, signal);
    });
    await reload(service);
    await stop(service);
  });
});
