/** A provider of existing machines. It declares them to the launcher, which registers nodes; it creates nothing. */

import type {
  Call,
  Instance,
  LoginScan,
  MachineFacts,
  NodeRequestHandler,
  Provider,
  ProviderContext,
  Readiness,
  SuppliedMachine,
} from '@nodepool/core';
import { AbortedError, ConfigurationError, KeyScanError, TimeoutError, TimerQueue, withDeadline } from '@nodepool/core';
import type { Addresses, Resolve } from './addresses.js';
import type { StaticMachine, StaticProviderConfig } from './config.js';

/** Connection types with ssh host keys. */
const SSH_TYPES: ReadonlySet<string> = new Set(['ssh', 'network_cli']);

export class StaticProvider implements Provider {
  constructor(
    readonly config: StaticProviderConfig,
    private readonly resolve: Resolve,
  ) {}

  async start({ nodeSupply, loginScan, clock }: ProviderContext): Promise<void> {
    // A builder provides neither of these and needs no machines.
    if (nodeSupply === undefined || loginScan === undefined) return;
    // The system's resolver knows neither deadlines nor signals.
    const timers = new TimerQueue(clock);
    const resolve = (host: string, { signal, deadline }: Call): Promise<Addresses> => {
      const name = `the resolution of host name ${host}`;
      const onDeadline = (): Error => new TimeoutError(`${name} had no answer in time`);
      const onAbort = (cause: Error): Error => new AbortedError(`${name} was aborted`, { cause });
      return withDeadline({ timers, signal, deadline, onDeadline, onAbort }, () => this.resolve(host));
    };
    const machines = [...this.config.pools.values()].flatMap((pool) =>
      pool.machines.map((machine): SuppliedMachine => {
        const { name: hostname, connection, labels, slots } = machine;
        const check = (call: Call): Promise<MachineFacts> => {
          const deadline = Math.min(call.deadline, clock.monotonic() + machine.timeoutMs);
          return this.check(machine, loginScan, resolve, { ...call, deadline });
        };
        return { pool: pool.name, hostname, connection, labels, slots, check };
      }),
    );
    nodeSupply.apply(machines);
  }

  stop(): void {
    // The launcher ends all work on the machines.
  }

  async join(): Promise<void> {
    // Nothing is in progress here.
  }

  labelReady(pool: string, label: string): Readiness {
    if (this.config.pools.get(pool)?.labels.has(label) === true) return { ready: true };
    return { ready: false, reason: `no machine of pool ${pool} has label ${label}` };
  }

  getRequestHandler(): NodeRequestHandler {
    return {
      launch: () => Promise.reject(new ConfigurationError('the driver static creates no nodes')),
      launchesComplete: () => true,
    };
  }

  async cleanupNode(): Promise<void> {
    // A machine stays when its node is deleted; the launcher then registers the next node.
  }

  async waitForNodeCleanup(): Promise<void> {
    // See `cleanupNode`.
  }

  async cleanupLeakedResources(): Promise<void> {
    // Nothing is created, so nothing leaks.
  }

  async listNodes(): Promise<readonly Instance[]> {
    return [];
  }

  private async check(
    machine: StaticMachine,
    scan: LoginScan,
    resolve: (host: string, call: Call) => Promise<Addresses>,
    call: Call,
  ): Promise<MachineFacts> {
    const { name, connection, hostKeys, hostKeyChecking } = machine;
    const addresses = await resolve(name, call);
    if (!hostKeyChecking) return { hostKeys, ...addresses };
    const found = await scan({ host: name, port: connection.port, connectionType: connection.type }, call);
    if (!SSH_TYPES.has(connection.type)) return { hostKeys: [], ...addresses };
    const missing = hostKeys.find((key) => !found.includes(bareKey(key)));
    if (missing === undefined) return { hostKeys: found, ...addresses };
    throw new KeyScanError(
      `port ${connection.port} of ${name} does not have the configured host key ${bareKey(missing)}, only: ` +
        `${found.join(', ')}; compare the keys, then correct host-key or the machine`,
    );
  }
}

/** Returns the key without a comment. */
function bareKey(key: string): string {
  return key.trim().split(/\s+/, 2).join(' ');
}
