import { AbortedError, sleep, TimeoutError, type Call, type Clock, type LoginScan } from '@nodepool/core';

const KEYS: readonly string[] = ['ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ6yzZzvPdqTzKBxIzTzYQ9xGnhRzU2bZcDbqyUBkK8D'];

/** Machines of any name and port. Each answers at once with the same host key unless a test changes that. */
export class SimulatedLogins {
  private readonly silent = new Set<string>();
  private readonly keys = new Map<string, readonly string[]>();

  constructor(private readonly clock: Clock) {}

  setKeys(host: string, keys: readonly string[]): void {
    this.keys.set(host, keys);
  }

  /** Makes a machine silent, or lets it answer again. */
  setSilent(host: string, silent: boolean): void {
    if (silent) this.silent.add(host);
    else this.silent.delete(host);
  }

  /** Scans as `ProviderContext.loginScan` does. */
  readonly scan: LoginScan = async ({ host, port, connectionType }, call) => {
    if (this.silent.has(host)) await this.wait(host, port, call);
    return connectionType === 'ssh' || connectionType === 'network_cli' ? (this.keys.get(host) ?? KEYS) : [];
  };

  private async wait(host: string, port: number, { signal, deadline }: Call): Promise<never> {
    const waitMs = Math.max(0, deadline - this.clock.monotonic());
    await sleep(this.clock, waitMs, signal).catch((cause: unknown) => {
      throw new AbortedError(`the scan of port ${port} of ${host} was aborted`, { cause });
    });
    throw new TimeoutError(`port ${port} of ${host} accepted no connection within ${waitMs} ms`);
  }
}
