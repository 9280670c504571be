/** Servers to scan: a real sshd, and TCP servers with scripted behaviour. */

import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const SSHD = ['/usr/sbin/sshd', '/usr/local/sbin/sshd', '/usr/bin/sshd', '/opt/homebrew/sbin/sshd'].find((path) =>
  existsSync(path),
);

const KEYS = [
  ['ed25519', 256],
  ['ecdsa', 256],
  ['ecdsa', 384],
  ['ecdsa', 521],
  ['rsa', 2048],
] as const;

/** An OpenSSH server with a host key of every kind, on a free port of the address. */
export class RealSshd {
  private constructor(
    readonly port: number,
    /** Host keys as `<type> <base64>`, sorted. */
    readonly keys: readonly string[],
    private readonly folder: string,
    private readonly process: ChildProcess,
  ) {}

  static async start(address: string): Promise<RealSshd> {
    if (SSHD === undefined) {
      throw new Error(
        "sshd was not found; these tests need OpenSSH's server and ssh-keygen (Debian: apt-get install openssh-server)",
      );
    }
    const folder = mkdtempSync(join(tmpdir(), 'nodescan-'));
    const files = KEYS.map(([type, bits]) => generateKey(folder, type, bits));
    const port = await freePort(address);
    const config = join(folder, 'sshd_config');
    const lines = [
      `Port ${port}`,
      `ListenAddress ${address}`,
      'PidFile none',
      'UsePAM no',
      'StrictModes no',
      ...files.map((file) => `HostKey ${file}`),
    ];
    writeFileSync(config, `${lines.join('\n')}\n`);
    // If run as root, sshd requires this empty folder, which the service manager normally creates.
    if (process.getuid?.() === 0) mkdirSync('/run/sshd', { recursive: true, mode: 0o755 });
    const child = spawn(SSHD, ['-D', '-e', '-f', config], { stdio: 'ignore' });
    const keys = files.map((file) => readFileSync(`${file}.pub`, 'utf8').split(' ').slice(0, 2).join(' '));
    return new RealSshd(port, keys.sort(), folder, child);
  }

  async stop(): Promise<void> {
    if (this.process.exitCode === null) {
      const ended = once(this.process, 'exit');
      this.process.kill();
      await ended;
    }
    rmSync(this.folder, { recursive: true });
  }
}

function generateKey(folder: string, type: string, bits: number): string {
  const file = join(folder, `${type}-${bits}`);
  const { status, stderr, error } = spawnSync('ssh-keygen', [
    '-q',
    '-t',
    type,
    '-b',
    String(bits),
    '-N',
    '',
    '-f',
    file,
  ]);
  if (status !== 0) {
    const reason = error?.message ?? String(stderr);
    throw new Error(`ssh-keygen failed (${reason}); these tests need it (Debian: apt-get install openssh-client)`);
  }
  chmodSync(file, 0o600);
  return file;
}

/** Returns a port on which no process listens. */
export async function freePort(address: string): Promise<number> {
  const server = createServer().listen(0, address);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** A TCP server that calls a function of the test for each connection. */
export class TestServer {
  readonly sockets = new Set<Socket>();
  accepted = 0;
  private readonly server: Server;

  constructor(onConnection: (socket: Socket) => void) {
    this.server = createServer((socket) => {
      this.accepted += 1;
      this.sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => this.sockets.delete(socket));
      onConnection(socket);
    });
  }

  async listen(address = '127.0.0.1', port = 0): Promise<number> {
    this.server.listen(port, address);
    await once(this.server, 'listening');
    return (this.server.address() as AddressInfo).port;
  }

  /** Resolves once the clients have closed all connections. */
  async allClosed(): Promise<void> {
    while (this.sockets.size > 0) {
      const [socket] = this.sockets;
      // `once()` of node:events would reject if the connection is reset.
      await new Promise((resolve) => socket?.once('close', resolve));
    }
  }

  async stop(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    if (!this.server.listening) return;
    this.server.close();
    await once(this.server, 'close');
  }
}
