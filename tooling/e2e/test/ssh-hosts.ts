/**
 * Hosts with OpenSSH's server, each on its own loopback address, that can be killed, frozen and given another host key.
 */

import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Program } from '@nodepool/harness';

const SSHD = '/usr/sbin/sshd';

export class SshHost {
  private server: Program | undefined;
  private rekeyed = false;

  private constructor(
    readonly address: string,
    readonly port: number,
    private readonly folder: string,
    /** The original host key as `<type> <base64>`. */
    readonly hostKey: string,
    private readonly settings: readonly string[],
  ) {}

  /** `settings` are additional ones of sshd, such as `AuthorizedKeysFile=/path`; without these, all logins fail. */
  static async start(
    address: string,
    port: number,
    folder: string,
    settings: readonly string[] = [],
  ): Promise<SshHost> {
    mkdirSync(folder, { recursive: true });
    for (const name of ['key', 'other']) {
      execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', join(folder, name)]);
    }
    const [type = '', key = ''] = readFileSync(join(folder, 'key.pub'), 'utf8').split(' ');
    const host = new SshHost(address, port, folder, `${type} ${key}`, settings);
    await host.revive();
    return host;
  }

  /** Starts the server if it is not running, continues it if it is frozen, and restores its original key. */
  async revive(): Promise<void> {
    this.server?.signal('SIGCONT');
    if (this.server !== undefined && !this.rekeyed) return;
    await this.run('key');
  }

  async kill(): Promise<void> {
    await this.server?.kill();
    this.server = undefined;
  }

  /** Stops the process (SIGSTOP): the kernel accepts connections, but they are not answered. */
  freeze(): void {
    this.server?.signal('SIGSTOP');
  }

  /** Replaces the host key. */
  async rekey(): Promise<void> {
    await this.run('other');
  }

  private async run(key: 'key' | 'other'): Promise<void> {
    await this.kill();
    this.rekeyed = key === 'other';
    const listen = `ListenAddress=${this.address}:${this.port}`;
    const settings = [listen, 'PidFile=none', 'UsePAM=no', 'MaxStartups=1000', ...this.settings];
    this.server = await Program.start({
      name: `sshd ${this.address}`,
      command: SSHD,
      args: ['-D', '-e', '-f', '/dev/null', '-h', join(this.folder, key), ...settings.flatMap((each) => ['-o', each])],
      logFile: join(this.folder, 'sshd.log'),
    });
  }
}
