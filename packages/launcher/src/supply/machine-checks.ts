/**
 * Checks the machines of a provider: before nodes are registered, before they are handed out, and regularly. A machine
 * that fails a check is out of service until it passes one; failed checks are repeated with back-off.
 */

import { isDeepStrictEqual } from 'node:util';
import {
  reasonOf,
  WorkQueue,
  type Logger,
  type MachineFacts,
  type Reconciled,
  type SuppliedMachine,
  driverCall,
} from '@nodepool/core';
import type { LauncherContext } from '../context.js';

/** Limit of one check, milliseconds; drivers usually have a shorter one. */
const CHECK_TIMEOUT_MS = 60_000;
/** Limits of the wait between checks of a machine that is out of service, milliseconds. */
const BACK_OFF = { firstMs: 5000, longestMs: 120_000 } as const;
/**
 * Time between checks of a usable machine, milliseconds: the minimum, and the part that each machine of the provider
 * adds.
 */
const INTERVAL_MS = 60_000;
const INTERVAL_PER_MACHINE_MS = 300;
/** Limit of simultaneous checks. */
const CONCURRENCY = 64;
/** Age up to which a passed check is not repeated before a node is handed out, milliseconds. */
const FRESH_MS = 5000;

/** Why and since when a machine is out of service. */
export interface Outage {
  readonly reason: string;
  /** Milliseconds since the epoch. */
  readonly since: number;
}

export interface CheckedMachine {
  readonly key: string;
  readonly machine: SuppliedMachine;
  /** Facts of the latest check that passed. */
  facts: MachineFacts | undefined;
  /** Undefined while the machine is usable. */
  outage: Outage | undefined;
  /** True if a check has passed since nodes of the machine were last registered. */
  cleared: boolean;
  /** `Clock.monotonic` of the latest check that passed, milliseconds. */
  passedAt: number;
  running: Promise<void> | undefined;
}

export interface MachineChecksOptions {
  readonly context: LauncherContext;
  readonly log: Logger;
  readonly provider: string;
  /** Aborts when the provider is stopped. */
  readonly signal: AbortSignal;
  /**
   * Called after every check. `changed` is true if the facts of the machine differ, or if it went into or out of
   * service.
   */
  readonly onChecked: (checked: CheckedMachine, changed: boolean) => void;
}

export class MachineChecks {
  private readonly machines = new Map<string, CheckedMachine>();
  private readonly queue: WorkQueue<string>;

  constructor(private readonly options: MachineChecksOptions) {
    this.queue = new WorkQueue({
      ...options.context,
      name: (key) => `check machine ${key}`,
      reconcile: (key) => this.reconcile(key),
      backOff: BACK_OFF,
      concurrency: CONCURRENCY,
      onFailure: (key, error, retry) => {
        const seconds = retry && Math.round(retry.waitMs / 1000);
        this.options.log.debug('A machine failed its check', { machine: key, reason: reasonOf(error), seconds });
      },
    });
  }

  get(key: string): CheckedMachine | undefined {
    return this.machines.get(key);
  }

  all(): Iterable<CheckedMachine> {
    return this.machines.values();
  }

  /** Replaces the machines and checks all of them. Machines that remain keep their state. */
  apply(machines: ReadonlyMap<string, SuppliedMachine>): void {
    for (const key of [...this.machines.keys()]) {
      if (machines.has(key)) continue;
      this.machines.delete(key);
      this.queue.remove(key);
    }
    for (const [key, machine] of machines) {
      const { facts, outage, passedAt = -Infinity } = this.machines.get(key) ?? {};
      this.machines.set(key, { key, machine, facts, outage, passedAt, cleared: false, running: undefined });
      this.request(key);
    }
  }

  /** Checks the machine soon, but not before the end of a back-off. */
  request(key: string): void {
    this.queue.add(key);
  }

  /** Requires another check of the machine before its nodes are registered. */
  expire(key: string): void {
    const checked = this.machines.get(key);
    if (checked !== undefined) checked.cleared = false;
  }

  /** Resolves with the reason why a node of the machine must not be handed out, or with undefined. */
  async verify(checked: CheckedMachine): Promise<string | undefined> {
    const age = this.options.context.clock.monotonic() - checked.passedAt;
    if (checked.outage === undefined && age <= FRESH_MS) return undefined;
    try {
      await this.check(checked);
      return undefined;
    } catch (error) {
      if (this.options.signal.aborted) return 'its provider is being stopped';
      this.request(checked.key);
      return reasonOf(error);
    }
  }

  /** Ends the regular checks. */
  retire(): void {
    this.queue.close();
  }

  /** Resolves once no regular check is running. */
  stop(): Promise<void> {
    return this.queue.idle();
  }

  private async reconcile(key: string): Promise<Reconciled> {
    const checked = this.machines.get(key);
    if (checked === undefined) return 'done';
    await this.check(checked);
    const { random } = this.options.context;
    const intervalMs = Math.max(INTERVAL_MS, this.machines.size * INTERVAL_PER_MACHINE_MS);
    return { requeueAfterMs: intervalMs * (1 + random.next() / 4) };
  }

  /** Rejects if the machine is not usable. Concurrent calls share one check. */
  private check(checked: CheckedMachine): Promise<void> {
    checked.running ??= this.run(checked).finally(() => {
      checked.running = undefined;
    });
    return checked.running;
  }

  private async run(checked: CheckedMachine): Promise<void> {
    const { context, signal, log } = this.options;
    const { clock } = context;
    const call = { signal, deadline: clock.monotonic() + CHECK_TIMEOUT_MS, log };
    try {
      const what = `the check of machine ${checked.machine.hostname}`;
      const facts = await driverCall(clock, what, call, (bounded) => checked.machine.check(bounded));
      this.passed(checked, facts);
    } catch (error) {
      if (!signal.aborted) this.failed(checked, reasonOf(error));
      throw error;
    }
  }

  private passed(checked: CheckedMachine, facts: MachineFacts): void {
    const { context, log, onChecked } = this.options;
    const wasOut = checked.outage !== undefined;
    const changed = wasOut || !isDeepStrictEqual(checked.facts, facts);
    checked.facts = facts;
    checked.outage = undefined;
    checked.cleared = true;
    checked.passedAt = context.clock.monotonic();
    if (wasOut) {
      log.info('A machine is in service again', aboutMachine(checked));
      this.decided(checked, 'is in service again');
    }
    onChecked(checked, changed);
  }

  private failed(checked: CheckedMachine, reason: string): void {
    const { context, log, onChecked } = this.options;
    const before = checked.outage;
    checked.cleared = false;
    checked.outage = { reason, since: before?.since ?? context.clock.now() };
    if (before === undefined) {
      log.warn('A machine is out of service', { ...aboutMachine(checked), reason });
      this.decided(checked, 'is out of service', reason);
    }
    onChecked(checked, before?.reason !== reason);
  }

  private decided({ machine }: CheckedMachine, what: string, reason?: string): void {
    const { context, provider } = this.options;
    for (const label of machine.labels) {
      context.decisions.record(
        'label',
        label,
        `${provider}/${machine.pool}`,
        `machine ${nameOfMachine(machine)} ${what}`,
        reason,
      );
    }
  }
}

/** Returns the name of the machine for messages, e.g. `rack1:22 (user zuul)`. */
export function nameOfMachine({ hostname, connection }: SuppliedMachine): string {
  return `${hostname}:${connection.port} (user ${connection.username ?? 'none'})`;
}

function aboutMachine({ machine }: CheckedMachine): Record<string, string | number | null> {
  const { pool, hostname, connection } = machine;
  return { pool, machine: hostname, username: connection.username, port: connection.port };
}
