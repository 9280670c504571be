/**
 * Tests of the boot test with real processes. A script takes the place of QEMU: it reads the arguments and the seed as
 * QEMU does, and its ssh server is the one of this machine.
 */

import { existsSync } from 'node:fs';
import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { silentLogger, systemClock, type BootTestConfig } from '@nodepool/core';
import { DibProcesses, QemuBootTester, type BootTest } from '../src/index.js';
import { bootableFile, qemuArguments } from '../src/boot-test/qemu-command.js';
import { eventually, processesWith } from './support/processes.js';

const ID = '0123456789abcdef0123456789abcdef';
const SSHD = '/usr/sbin/sshd';

/** Starts `$machine` with the port and the seed of the arguments. */
const QEMU = `#!/bin/sh
for arg; do
  case $arg in
    *hostfwd=*) port=\${arg#*127.0.0.1:}; port=\${port%-:22} ;;
    driver=vvfat,*) seed=\${arg#*dir=}; seed=\${seed%%,*} ;;
  esac
done
echo "$@" >>"$NODEPOOL_TEST_MACHINE/arguments"
. "$NODEPOOL_TEST_MACHINE/machine"
`;

const SERVER = `
sed -n 's/.*"ssh_authorized_keys":\\["\\(ssh-[^"]*\\)"\\].*/\\1/p' "$seed/user-data" >"$NODEPOOL_TEST_MACHINE/keys"
[ -e "$NODEPOOL_TEST_MACHINE/host" ] || ssh-keygen -q -t ed25519 -N '' -f "$NODEPOOL_TEST_MACHINE/host"
mkdir -p /run/sshd 2>/dev/null
exec ${SSHD} -D -e -p "$port" -o ListenAddress=127.0.0.1 -h "$NODEPOOL_TEST_MACHINE/host" -o PidFile=none \\
  -o StrictModes=no -o UsePAM=no -o AuthorizedKeysFile="$NODEPOOL_TEST_MACHINE/keys"
`;

let folder: string;
let images: string;
const path = process.env['PATH'];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nodepool-machine-'));
  images = await mkdtemp(join(tmpdir(), 'nodepool-images-'));
  await writeFile(join(folder, 'qemu-system-x86_64'), QEMU);
  await chmod(join(folder, 'qemu-system-x86_64'), 0o755);
  process.env['PATH'] = `${folder}:${path ?? ''}`;
  process.env['NODEPOOL_TEST_MACHINE'] = folder;
});
afterEach(async () => {
  process.env['PATH'] = path;
  delete process.env['NODEPOOL_TEST_MACHINE'];
  expect((await readdir(images)).filter((name) => name !== 'builds-in-progress')).toEqual([]);
  await eventually(async () => (await processesWith(`NODEPOOL_TEST_MACHINE=${folder}`)).length === 0);
  await rm(folder, { recursive: true });
  await rm(images, { recursive: true });
});

async function boot(
  machine: string,
  config: Partial<BootTestConfig> = {},
  more: Partial<BootTest> = {},
): Promise<void> {
  await writeFile(join(folder, 'machine'), machine);
  const creator = new DibProcesses(systemClock, images, () => ({ folder: join(folder, 'logs'), retention: 7 }));
  await new QemuBootTester(systemClock, images, creator).test({
    build: { image: 'debian', id: ID },
    files: [{ format: 'qcow2', path: '/images/a,b.qcow2', bytes: 1, usedBytes: 1 }],
    config: {
      ...{ timeoutMs: 60_000, memory: 512, cpus: 1, kvm: false, command: undefined, commandTimeoutMs: 60_000 },
      ...config,
    },
    username: userInfo().username,
    signal: new AbortController().signal,
    log: silentLogger,
    ...more,
  });
}

const consoleText = (): Promise<string> => readFile(join(folder, 'logs', `debian-${ID}.log`), 'utf8');
const argumentsText = (): Promise<string> => readFile(join(folder, 'arguments'), 'utf8');

describe('the command of QEMU', () => {
  it('boots a copy of the image without a network, and reads names with commas', () => {
    const config = { memory: 256, cpus: 2 };
    const options = { path: '/a,b.raw', driver: 'raw', seed: '/seed', port: 4000, accelerator: 'tcg', config } as const;
    const text = qemuArguments(options).join(' ');
    expect(text).toContain('-drive file=/a,,b.raw,format=raw,if=virtio,snapshot=on');
    expect(text).toContain('-netdev user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:4000-:22');
    expect(text).toContain('-m 256 -smp 2');
  });

  it('prefers formats that are quick to read, and has none for others', () => {
    const file = (format: string) => ({ format, path: `/a.${format}`, bytes: 1, usedBytes: 1 });
    expect(bootableFile([file('vhd'), file('qcow2')])).toMatchObject({ driver: 'qcow2' });
    expect(bootableFile([file('vhd')])).toMatchObject({ driver: 'vpc' });
    expect(bootableFile([file('tgz')])).toBeUndefined();
  });
});

const withServer = existsSync(SSHD) && process.arch === 'x64' ? it : it.skip;

describe('a boot test', () => {
  withServer('passes once the login answers and the command succeeds, with the key of the seed', async () => {
    await boot(SERVER, { command: 'test -n "$SSH_CONNECTION"' });
    expect(await argumentsText()).toContain('-accel tcg');
  });

  withServer('fails with the last line of a command that fails', async () => {
    await expect(boot(SERVER, { command: 'echo no python >&2; exit 3' })).rejects.toMatchObject({
      failure: 'boot-test',
      message: 'the build failed its boot test: its command ended with status 3, its last line: no python',
    });
  });

  withServer('fails at once if the kernel panics; an emulated machine is booted again first', async () => {
    const panic = 'echo "Kernel panic - not syncing: VFS: Unable to mount root fs"; exec sleep 1000';
    await expect(boot(panic)).rejects.toMatchObject({
      failure: 'boot-test',
      message: 'the build failed its boot test: Kernel panic - not syncing: VFS: Unable to mount root fs',
    });
    expect((await argumentsText()).trim().split('\n')).toHaveLength(2);
    expect(await consoleText()).toContain('Unable to mount root fs');
  });

  withServer('fails if the machine switches itself off', async () => {
    await expect(boot('exit 0')).rejects.toMatchObject({
      failure: 'boot-test',
      message: expect.stringContaining('switched off before its login answered'),
    });
  });

  withServer('fails if the login does not answer in time, and keeps the console', async () => {
    await expect(boot('echo no sshd here; exec sleep 1000', { timeoutMs: 1000 })).rejects.toMatchObject({
      failure: 'boot-test',
      message: expect.stringContaining('its login did not answer within 1 s'),
    });
    expect(await consoleText()).toContain('no sshd here');
  });

  withServer('ends with the reason of its signal', async () => {
    const stop = new AbortController();
    stop.abort(new Error('the builder is stopping'));
    await expect(boot('exec sleep 1000', {}, { signal: stop.signal })).rejects.toThrow('the builder is stopping');
  });

  it('fails with a remedy if no file of the build can be booted', async () => {
    const files = [{ format: 'tgz', path: '/a.tgz', bytes: 1, usedBytes: 1 }];
    await expect(boot('exit 0', {}, { files })).rejects.toThrow('add `formats: [qcow2]`');
  });
});
