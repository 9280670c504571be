/**
 * The ssh server of an instance that accepts logins: OpenSSH's sshd, started for each connection. Commands run on this
 * machine, as the user of this process or, if that is root, as any user.
 */

import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** sshd must be called by its absolute path, because it executes itself again. */
const SSHD = ['/usr/sbin/sshd', '/usr/local/sbin/sshd', '/usr/bin/sshd'].find((path) => existsSync(path));

export class Sshd {
  private readonly folder: string;
  private readonly config: string;
  private readonly children = new Set<ChildProcess>();

  /** Throws if OpenSSH's server is not installed. */
  constructor(
    hostKeys: readonly string[],
    authorizedKeys: string,
    private readonly onFailure: (error: Error) => void,
  ) {
    if (SSHD === undefined) throw new Error('sshd is not installed (Debian: apt-get install openssh-server)');
    // If run as root, sshd requires this empty folder, which the service manager normally creates.
    if (process.getuid?.() === 0) mkdirSync('/run/sshd', { recursive: true, mode: 0o755 });
    this.folder = mkdtempSync(join(tmpdir(), 'nodepool-example-sshd-'));
    const files = hostKeys.map((key, index) => this.write(`host-key-${index}`, key));
    const lines = [
      ...files.map((file) => `HostKey "${file}"`),
      `AuthorizedKeysFile "${authorizedKeys}"`,
      'AuthenticationMethods publickey',
      'PermitRootLogin prohibit-password',
      'UsePAM no',
      'StrictModes no',
      'PidFile none',
      'PrintMotd no',
      'Subsystem sftp internal-sftp',
      // The connections stay on this machine; the default costs ten times as much processor time.
      'KexAlgorithms curve25519-sha256,curve25519-sha256@libssh.org',
      // Keeps bash from reading the `.bashrc` of this machine's user, which is no part of the instance.
      'SetEnv SHLVL=1',
    ];
    this.config = this.write('sshd_config', `${lines.join('\n')}\n`);
  }

  /** Serves a connection that this process has not read from. */
  serve(socket: Socket): void {
    const child = spawn(SSHD ?? '', ['-i', '-e', '-f', this.config], { stdio: [socket, socket, 'ignore'] });
    this.children.add(child);
    child.once('close', () => this.children.delete(child));
    child.once('error', this.onFailure);
    // The child has a descriptor of its own.
    child.once('spawn', () => socket.destroy());
  }

  close(): void {
    for (const child of this.children) child.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }

  private write(name: string, text: string): string {
    const file = join(this.folder, name);
    writeFileSync(file, text, { mode: 0o600 });
    return file;
  }
}
