/** `nodepool run` up to the call of ssh; tooling/e2e runs it with real nodes. */
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { NodeData } from '@nodepool/core';
import { World, type RunningCli } from './world.js';

const LOGIN: Partial<NodeData> = {
  interface_ip: '192.0.2.9',
  connection_port: 2222,
  host_keys: ['ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDFa'],
};

let world: World;
let folder: string;
beforeEach(async () => {
  world = new World();
  await world.start();
  folder = mkdtempSync(join(tmpdir(), 'nodepool-run-test-'));
  world.env = { PATH: `${folder}:/usr/bin:/bin`, HOME: folder };
});
afterEach(async () => {
  await world.stop();
  rmSync(folder, { recursive: true });
});

/** Puts a program on the PATH that notes its arguments, and then runs the script. */
function fakeProgram(name: string, script: string): void {
  const file = join(folder, name);
  writeFileSync(file, `#!/bin/sh\nprintf '%s\\n' "$@" >>${folder}/${name}.calls\n${script}\n`);
  chmodSync(file, 0o755);
}

function callsOf(name: string): readonly string[] {
  const file = join(folder, `${name}.calls`);
  return existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : [];
}

async function finished(running: RunningCli): Promise<RunningCli> {
  await world.until(() => running.code !== undefined);
  return running;
}

/** An ssh that runs the command line here, as sshd does on a node. */
const LOCAL_SSH = `
for last; do :; done
cp "$(printf '%s\\n' "$@" | sed -n 's/^UserKnownHostsFile="\\(.*\\)"$/\\1/p')" \${0%/*}/known_hosts
exec setsid --wait sh -c "$last"`;

describe('nodepool run', () => {
  it.each<[string, Partial<NodeData>, string]>([
    ['an option as the address', { interface_ip: '-oProxyCommand=touch${IFS}pwned' }, 'is not an address'],
    ['an address with a command as its zone', { interface_ip: 'fe80::1%$(id)' }, 'is not an address'],
    ['an address with a zone', { interface_ip: 'fe80::1%eth0' }, 'is not an address'],
    ['an option as the user', { username: '-oProxyCommand=id' }, 'is not a user name'],
    ['a user with shell syntax', { username: 'zuul$(id)' }, 'is not a user name'],
    ['a host key with a second line', { host_keys: ['ssh-rsa AAAA\n* ssh-rsa BBBB'] }, 'is not a host key'],
    ['a host key with a marker', { host_keys: ['@cert-authority AAAA'] }, 'is not a host key'],
    ['no host keys', { host_keys: [] }, 'host-key-checking: true'],
    ['no user', { username: null }, '--user'],
    ['no address', { interface_ip: null }, 'has no address'],
    ['credentials instead of a port', { connection_port: { token: 'secret' } }, 'has no port for ssh'],
    ['winrm', { connection_type: 'winrm' }, 'its connection type is "winrm"; commands need ssh'],
    ['a network device', { connection_type: 'network_cli' }, 'need ssh'],
    ['a Windows shell', { shell_type: 'powershell' }, 'need a POSIX shell'],
  ])('does not call ssh for a node with %s', async (_, facts, why) => {
    fakeProgram('ssh', 'exit 0');
    const running = world.cli('run', '--label', 'small', '--', 'true');
    const [id] = await world.fulfil({ ...LOGIN, ...facts });
    const { code, out } = await finished(running);
    expect([code, out.noted]).toEqual([125, expect.stringContaining(why)]);
    expect(out.noted).not.toContain('secret');
    expect(callsOf('ssh')).toEqual([]);
    expect(world.stateOf(id!)).toBe('used');
  });

  it.each([
    [['--env', 'NOT_SET'], 'the variable NOT_SET is not set here'],
    [['--env', '1=2'], 'neither NAME nor NAME=VALUE'],
    [['--identity', '/nonexistent/key'], '/nonexistent/key cannot be read'],
    [['--copy', '/nonexistent/file'], '/nonexistent/file does not exist'],
    [['--copy', '/etc/passwd:-x'], 'cannot be a path on a node'],
    [['--copy', '/etc/passwd:$(id)'], 'cannot be a path on a node'],
  ])('%j is rejected before nodes are requested', async (options, why) => {
    fakeProgram('ssh', 'exit 0');
    const { code, out } = await finished(world.cli('run', '--label', 'small', ...options, '--', 'true'));
    expect([code, out.noted]).toEqual([125, expect.stringContaining(why)]);
    expect(world.store.requests.size).toBe(0);
  });

  it('reports an unreachable ZooKeeper and a wrong configuration as failures without a remote command', async () => {
    world.connectError = new Error('no server answers');
    const unreachable = await world.run('run', '--label', 'small', '--', 'false');
    expect([unreachable.code, unreachable.out.noted]).toEqual([125, expect.stringContaining('no server answers')]);
    expect((await world.run('list')).code).toBe(1);
    await world.writeConfig('labels: small');
    const wrong = await world.run('run', '--label', 'small', '--', 'false');
    expect([wrong.code, wrong.out.noted]).toEqual([125, expect.stringContaining('the configuration cannot be used')]);
  });

  it('reports a missing ssh before it requests nodes', async () => {
    world.env = { PATH: folder };
    const { code, out } = await finished(world.cli('run', '--label', 'small', '--', 'true'));
    expect([code, out.noted]).toEqual([125, expect.stringContaining('ssh is not installed')]);
    expect(world.store.requests.size).toBe(0);
  });

  it('trusts the scanned host keys only, and passes each argument unchanged', async () => {
    fakeProgram('ssh', LOCAL_SSH);
    const args = ['printf', '<%s>', "it's", '$HOME', 'two words', '', '*', 'a\nb', '-n'];
    const running = world.cli('run', '--label', 'small', '--env', `GREETING=it's "me" $HOME`, '--', ...args);
    await world.fulfil(LOGIN);
    const { code, out } = await finished(running);
    expect([code, out.printed]).toEqual([0, "<it's><$HOME><two words><><*><a\nb><-n>"]);
    expect(readFileSync(join(folder, 'known_hosts'), 'utf8')).toBe(`[192.0.2.9]:2222 ${LOGIN.host_keys![0]!}\n`);
    expect(callsOf('ssh').slice(0, 12)).toEqual([
      ...['-F', 'none', '-o', 'BatchMode=yes', '-o', 'StrictHostKeyChecking=yes', '-o'],
      expect.stringMatching(/^UserKnownHostsFile="\/.*\/known_hosts-[0-9]+"$/),
      ...['-o', 'GlobalKnownHostsFile=/dev/null', '-o', 'UpdateHostKeys=no'],
    ]);
  });

  it('interrupted while ssh connects says so, returns the node, and exits with 125', async () => {
    fakeProgram('ssh', 'exec sleep 60');
    const running = world.cli('run', '--label', 'small', '--', 'true');
    await world.fulfil(LOGIN);
    await world.until(() => callsOf('ssh').length > 0);
    running.interrupt();
    const { code, out } = await finished(running);
    expect([code, out.noted]).toEqual([125, expect.stringContaining('interrupted before the command began')]);
    expect(out.noted).not.toContain('above');
  });

  it('says that the cloud takes a node away while the command runs, and passes on its status', async () => {
    fakeProgram('ssh', `while test ! -e ${folder}/go; do sleep 0.1; done; exec true`);
    const running = world.cli('run', '--label', 'small', '--', 'true');
    const [id = ''] = await world.fulfil(LOGIN);
    await world.until(() => callsOf('ssh').length > 0 && world.stateOf(id) === 'in-use');
    const loss = { kind: 'reclaimed', reason: 'the cloud takes its instance away', time: 5, ends_at: 125 } as const;
    await world.finish(world.store.nodes.setInterruption(world.store.nodes.get(id)!, loss));
    await world.until(() => running.out.noted.includes('interrupted'));
    writeFileSync(join(folder, 'go'), '');
    const { out } = await finished(running);
    expect(out.noted).toContain(
      `node ${id} is interrupted: the cloud takes its instance away; it ends at 1970-01-01T00:02:05`,
    );
    expect(world.stateOf(id)).toBe('used');
  });

  it('sets environment variables', async () => {
    fakeProgram('ssh', LOCAL_SSH);
    world.env = { ...world.env, HERE: 'from here' };
    const options = ['--env', `A=it's "me" $HOME\n2`, '--env', 'HERE'];
    const running = world.cli('run', '--label', 'small', ...options, '--', 'sh', '-c', 'printf "%s|%s" "$A" "$HERE"');
    await world.fulfil(LOGIN);
    expect((await finished(running)).out.printed).toBe(`it's "me" $HOME\n2|from here`);
  });

  it.each([
    ['exit 0', 0, /running as zuul at 192\.0\.2\.9, port 2222$/],
    ['exit 3', 3, /the command ended with status 3$/],
    ['exit 255', 255, /the command ended with status 255$/],
    ['kill -9 $$', 137, /the command ended with status 137$/],
    ['exec nonexistent-program', 127, /not found\nnode \d+: the command ended with status 127$/],
  ])('has the exit status of the command: %s', async (script, status, note) => {
    fakeProgram('ssh', LOCAL_SSH);
    const running = world.cli('run', '--label', 'small', '--', 'sh', '-c', script);
    await world.fulfil(LOGIN);
    const { code, out } = await finished(running);
    expect([code, out.noted]).toEqual([status, expect.stringMatching(note)]);
  });

  it('distinguishes a failure of ssh from a command that ends with the same status', async () => {
    fakeProgram('ssh', 'echo "Host key verification failed." >&2; exit 255');
    const running = world.cli('run', '--label', 'small', '--', 'true');
    await world.fulfil(LOGIN);
    const { code, out } = await finished(running);
    expect(code).toBe(255);
    expect(out.noted).toMatch(
      /Host key verification failed\.\n+node \d+: ssh ended with status 255 before the command/,
    );
  });

  it('prefixes each line with the id of the node if there are several', async () => {
    fakeProgram('ssh', LOCAL_SSH);
    const script = 'echo out; printf unfinished; echo problem >&2; [ ! -e /nonexistent ] && exit 7';
    const running = world.cli('run', '--label', 'small', '--count', '2', '--', 'sh', '-c', script);
    const ids = await world.fulfil(LOGIN);
    const { code, out } = await finished(running);
    expect(code).toBe(7);
    const lines = out.printed.split('\n').filter((line) => line !== '');
    expect(lines.sort()).toEqual(ids.flatMap((id) => [`${id}: out`, `${id}: unfinished`]));
    for (const id of ids) expect(out.noted).toContain(`${id}: problem`);
  });

  it('stops the command when the nodes are lost', async () => {
    fakeProgram('ssh', LOCAL_SSH);
    const running = world.cli('run', '--label', 'small', '--', 'sleep', '100');
    await world.fulfil(LOGIN);
    await world.until(() => running.out.noted.includes('running as'));
    world.server.expireSession(world.cliClients[0]!);
    while (running.code === undefined) await world.clock.advance(1000);
    expect(running.code).toBe(125);
    expect(running.out.noted).toContain('so do not use them; the command was stopped');
  });

  it('names the loss of the nodes, also if ssh notices first that they are gone', async () => {
    fakeProgram('ssh', `while [ ! -e ${folder}/gone ]; do sleep 0.02; done; exit 255`);
    const running = world.cli('run', '--label', 'small', '--', 'sleep', '100');
    await world.fulfil(LOGIN);
    await world.until(() => running.out.noted.includes('running as'));
    world.server.partition(world.cliClients[0]!, 'silent');
    await world.clock.advance(1000);
    writeFileSync(join(folder, 'gone'), '');
    while (!running.out.noted.includes('ssh ended with')) await new Promise((resolve) => setImmediate(resolve));
    for (let turn = 0; turn < 100; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    while (running.code === undefined) await world.clock.advance(1000);
    expect(running.out.noted).toContain('so do not use them; the command was stopped');
    expect(running.code).toBe(125);
  });

  it('withdraws the request after --wait-timeout, with the reason', async () => {
    const running = world.cli('run', '--label', 'small', '--wait-timeout', '1m', '--', 'true');
    await world.until(() => running.out.noted.includes('requested'));
    await world.clock.advance(60_000);
    const { code, out } = await finished(running);
    expect([code, out.noted]).toEqual([
      125,
      expect.stringContaining('within 60 s; the request is cancelled: no registered'),
    ]);
    await world.until(() => world.store.requests.size === 0);
  });
});
