/** Resumes and suspends nodes of Slurm: each node that is on has a lease of its own. */

import { reasonOf, sleep, Slots, type Clock } from '@nodepool/core';
import { runOverSsh, type SshTarget } from '@nodepool/daemon/ssh';
import {
  GatewayUnreachableError,
  LeaseEndedError,
  LeaseRequestError,
  type LeaseClient,
  type LeaseDocument,
  type LeaseOutcome,
} from '@nodepool/requestor/http';
import { CommandError } from '../command-context.js';
import { leasedTarget } from '../gateway-access.js';
import { isActive, type NodeLeases } from './node-leases.js';
import type { Slurm } from './slurm.js';

/** Time (ms) between attempts while the gateway is away, or while the token's nodes are all in use. */
const RETRY_MS = 5000;
/** Limits (ms) of the scripts on a node. */
const START_TIMEOUT_MS = 120_000;
const STOP_TIMEOUT_MS = 30_000;
/** Nodes that are started or suspended at once. */
const PARALLEL = 20;
const HOST_NAME = /^[A-Za-z0-9][A-Za-z0-9.-]*$/;

export interface PowerOptions {
  /** Returns the label of a node, or undefined if the node is not of this program. */
  readonly labelOf: (node: string) => string | undefined;
  readonly priority: number | undefined;
  /** Seconds until a lease expires without renewal. */
  readonly lifetime: number;
  /** Limit of the wait for a node, seconds. */
  readonly timeout: number;
  readonly user: string | undefined;
  /** File with the private key. */
  readonly identity: string | undefined;
  /** Scripts for the node; `start` starts slurmd. */
  readonly start: string;
  readonly stop: string | undefined;
}

export interface PowerContext {
  readonly slurm: Slurm;
  readonly leases: NodeLeases;
  readonly client: LeaseClient;
  readonly options: PowerOptions;
  readonly clock: Clock;
  readonly interrupted: AbortSignal;
  readonly note: (text: string) => void;
}

export class Power {
  private readonly slots = new Slots(PARALLEL);

  constructor(private readonly context: PowerContext) {}

  /** Brings nodes up that Slurm powers up. Resolves with the number of failures, which are reported to Slurm. */
  async resume(names: readonly string[]): Promise<number> {
    const ends = await Promise.all(names.map((name) => this.resumeOne(name)));
    return ends.filter((isUp) => !isUp).length;
  }

  /** Releases the leases of nodes that Slurm powers down. Resolves with the number of failures. */
  async suspend(names: readonly string[]): Promise<number> {
    const { slurm, leases, interrupted, note } = this.context;
    const suspendOne = async (name: string): Promise<boolean> => {
      const active = (await leases.of(name)).filter(isActive);
      // A late call must not end the lease of a node that Slurm has resumed since.
      const isOff = active.length === 0 || ((await slurm.node(name))?.power ?? 'off') === 'off';
      if (!isOff) note(`${name}: Slurm does not power it down; its lease stays`);
      for (const lease of isOff ? active : []) {
        await this.release(name, lease, 'success', 'Slurm has powered the node down');
      }
      return true;
    };
    const ends = names.map((name) =>
      this.slots
        .run(interrupted, () => suspendOne(name))
        .catch((error: unknown) => {
          note(`${name}: not suspended: ${reasonOf(error)}`);
          return false;
        }),
    );
    return (await Promise.all(ends)).filter((isDone) => !isDone).length;
  }

  /** Makes nodes usable again that Slurm has marked down because they did not start in time. */
  async recover(names: readonly string[]): Promise<number> {
    for (const name of names) await this.context.slurm.reset(name);
    return this.suspend(names);
  }

  /** Stops slurmd if there is a script for that, and releases a lease. */
  async release(name: string, lease: LeaseDocument, outcome: LeaseOutcome, comment: string): Promise<void> {
    const { options, note, leases } = this.context;
    if (options.stop !== undefined && lease.nodes[0]?.state === 'in-use') {
      await this.execute(name, this.targetOf(lease), options.stop, STOP_TIMEOUT_MS).catch((error: unknown) =>
        note(`${name}: not stopped: ${reasonOf(error)}`),
      );
    }
    await leases.release(lease, outcome, comment);
    note(`${name}: lease ${lease.id} is released: ${comment}`);
  }

  /**
   * Tells Slurm the address of a leased node, and starts slurmd there. Several processes can do this for one lease at
   * the same time: one of them starts slurmd.
   */
  async start(name: string, lease: LeaseDocument): Promise<void> {
    const target = this.targetOf(lease);
    const [node] = lease.nodes;
    const hostname = HOST_NAME.test(node?.hostname ?? '') ? (node?.hostname ?? name) : name;
    await this.context.slurm.setAddress(name, target.address, hostname);
    await this.execute(name, target, onceScript(lease.id, this.context.options.start), START_TIMEOUT_MS);
    this.context.note(`${name}: slurmd is started on node ${node?.id ?? ''} at ${target.address}`);
  }

  private async resumeOne(name: string): Promise<boolean> {
    const { options, clock, interrupted, note } = this.context;
    const end = new AbortController();
    const timer = clock.schedule(options.timeout * 1000, () =>
      end.abort(new CommandError(`there is no node within ${options.timeout} s`)),
    );
    try {
      await this.bringUp(name, AbortSignal.any([interrupted, end.signal]));
      return true;
    } catch (error) {
      if (interrupted.aborted) return false;
      const reason = reasonOf(end.signal.aborted ? end.signal.reason : error);
      note(`${name}: ${reason}`);
      await this.giveUp(name, reason).catch((failure: unknown) => note(`${name}: ${reasonOf(failure)}`));
      return false;
    } finally {
      timer.cancel();
    }
  }

  /** Tells Slurm that a node does not start, and releases its lease. */
  private async giveUp(name: string, reason: string): Promise<void> {
    const { slurm, leases } = this.context;
    // Another process may have started the node meanwhile, or Slurm may have given it up.
    if ((await slurm.node(name))?.power !== 'starting') return;
    await slurm.fail(name, reason);
    for (const lease of (await leases.of(name)).filter(isActive)) await leases.release(lease, 'failure', reason);
  }

  private async bringUp(name: string, signal: AbortSignal): Promise<void> {
    const { slurm, leases, client, options, clock, note } = this.context;
    const label = options.labelOf(name);
    if (label === undefined) throw new CommandError('--label names no label for it');
    let said = '';
    const say = (text: string): void => {
      if (text !== said) note(`${name}: ${text}`);
      said = text;
    };
    for (;;) {
      signal.throwIfAborted();
      const power = (await slurm.node(name))?.power;
      if (power !== 'starting') {
        say('Slurm does not power it up; nothing to do');
        return;
      }
      try {
        const { id } = await leases.acquire(name, { ...options, label });
        const lease = await client.ready(id, {
          signal,
          onChange: ({ phase, reasons }) => say(`lease ${id}: ${[phase, ...reasons].join('; ')}`),
        });
        await this.slots.run(signal, () => this.start(name, lease));
        return;
      } catch (error) {
        if (!canRepeat(error)) throw error;
        say(`waiting: ${reasonOf(error)}`);
        await sleep(clock, RETRY_MS, signal);
      }
    }
  }

  private targetOf(lease: LeaseDocument): SshTarget {
    const [node] = lease.nodes;
    if (node === undefined) throw new CommandError(`lease ${lease.id} has no node`);
    return leasedTarget(node, this.context.options.user);
  }

  /** Runs a script on a node, with the name that Slurm gives the node in SLURM_NODE. */
  private async execute(name: string, target: SshTarget, script: string, timeoutMs: number): Promise<void> {
    const { options, clock, interrupted } = this.context;
    const { status, timedOut, output } = await runOverSsh({
      ...{ target, identity: options.identity, command: `SLURM_NODE=${name}; export SLURM_NODE\n${script}` },
      ...{ timeoutMs, signal: interrupted, clock },
    });
    if (status === 0) return;
    const how = timedOut ? `did not end within ${timeoutMs / 1000} s` : `ended with status ${status}`;
    throw new CommandError(`the script on ${target.address} ${how}: ${output.trim()}`);
  }
}

/** Returns a script that executes another one once for each lease. */
function onceScript(lease: string, script: string): string {
  const mark = `"\${TMPDIR:-/tmp}/nodepool-slurm-${lease}"`;
  return `mkdir ${mark} || { [ -d ${mark} ]; exit; }\n(\n${script}\n) </dev/null || { status=$?; rmdir ${mark}; exit $status; }`;
}

/** Returns true if another attempt can succeed without an operator. */
function canRepeat(error: unknown): boolean {
  if (error instanceof GatewayUnreachableError) return true;
  if (error instanceof LeaseRequestError) return error.code === 'quota' || error.status === 503 || error.status === 404;
  return error instanceof LeaseEndedError && error.lease.end?.reason !== 'failed';
}
