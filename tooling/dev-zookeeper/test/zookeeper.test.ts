/** Real servers start, stop, keep their data, and end with the process that started them. */

import { afterAll, describe, expect, it } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { freePorts, startZooKeeper, zooKeeperForTests, type RunningZooKeeper } from '../src/index.js';

const running: RunningZooKeeper[] = [];

async function start(...options: Parameters<typeof startZooKeeper>): Promise<RunningZooKeeper> {
  const started = await startZooKeeper(...options);
  running.push(started);
  return started;
}

afterAll(() => Promise.all(running.map((server) => server.stop())));

const zxid = (srvr: string): string | undefined => /Zxid: (0x[0-9a-f]+)/.exec(srvr)?.[1];

it('freePorts returns distinct ports', async () => {
  const ports: number[] = [];
  for (let round = 0; round < 40; round += 1) ports.push(...(await freePorts(10)));
  expect(new Set(ports).size).toBe(400);
});

describe('a server', () => {
  it('stops, and restarts with its data', async () => {
    const server = await start();
    expect(await server.fourLetterWord('ruok')).toBe('imok');
    const before = zxid(await server.fourLetterWord('srvr'));
    await server.kill('SIGTERM');
    await expect(server.fourLetterWord('ruok')).rejects.toThrow(/ECONNREFUSED/);
    await server.restart();
    expect(BigInt(zxid(await server.fourLetterWord('srvr')) ?? '-1')).toBeGreaterThanOrEqual(BigInt(before ?? '0'));
    await server.stop();
    await server.stop();
  });

  it('fails with the end of its log if its settings are invalid', async () => {
    await expect(startZooKeeper({ settings: { initLimit: 'nonsense' } })).rejects.toThrow(
      /ended; its log ends with:[^]*nonsense/,
    );
  });

  it('with TLS has certificates', async () => {
    const server = await start({ tls: true });
    expect(server.tlsServers).toMatch(/^localhost:\d+$/);
    expect([server.tls?.ca, server.tls?.cert, server.tls?.key].map((file) => existsSync(file ?? ''))).toEqual([
      true,
      true,
      true,
    ]);
  });

  it('of an ensemble is the leader, and another one becomes the leader after its end', async () => {
    const ensemble = await start({ ensembleSize: 3, tickTime: 500 });
    const first = await ensemble.leader();
    expect(ensemble.servers.split(',')).toHaveLength(3);
    expect([0, 1, 2]).toContain(first);
    await ensemble.kill('SIGKILL', first);
    await ensemble.restart(first);
    expect([0, 1, 2]).toContain(await ensemble.leader());
  });

  it('runs during a command, and the program returns the exit status of the command', async () => {
    const command = ['sh', '-c', 'echo "servers: $ZOOKEEPER_SERVERS"; exit 3'];
    const program = spawn(process.execPath, [join(__dirname, '../dist/main.js'), '--', ...command], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let output = '';
    program.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    const [status] = (await once(program, 'close')) as [number | null];
    expect({ status, output }).toEqual({ status: 3, output: expect.stringMatching(/^servers: 127\.0\.0\.1:\d+\n$/) });
  });

  it('ends if the process that started it is killed', async () => {
    const program = spawn(process.execPath, [join(__dirname, '../dist/main.js')], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = (await once(program.stdout, 'data')) as [Buffer];
    const { servers } = JSON.parse(line.toString()) as { servers: string };
    const socket = connect(Number(servers.split(':')[1]), '127.0.0.1');
    await once(socket, 'connect');
    // Not once() of node:events, which rejects if the connection is reset.
    const ended = new Promise((resolve) => socket.once('close', resolve));
    socket.on('error', () => undefined);
    program.kill('SIGKILL');
    await ended;
  });
});

describe('a server for tests', () => {
  it('has a separate root for each run', async () => {
    const [one, two] = await Promise.all([zooKeeperForTests(), zooKeeperForTests()]);
    expect(one.servers).toMatch(/^[\d.:,]+\/test-[0-9a-f-]{36}$/);
    expect(one.servers).not.toBe(two.servers);
    await Promise.all([one.stop(), two.stop()]);
  });

  it('is the server in ZOOKEEPER_SERVERS, and only its own root is deleted', async () => {
    const server = await start();
    const outside = server.servers;
    process.env['ZOOKEEPER_SERVERS'] = outside;
    try {
      const named = await zooKeeperForTests();
      expect(named.servers.startsWith(`${outside}/test-`)).toBe(true);
      const nodes = async (): Promise<number> =>
        Number(/Node count: (\d+)/.exec(await server.fourLetterWord('srvr'))?.[1]);
      const during = await nodes();
      await named.stop();
      expect(await nodes()).toBe(during - 1);
    } finally {
      delete process.env['ZOOKEEPER_SERVERS'];
    }
  });
});
