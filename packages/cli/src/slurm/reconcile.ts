/** Compares the leases of a cluster with its nodes, and repairs what killed programs have left. */

import { reasonOf, Slots } from '@nodepool/core';
import type { LeaseDocument } from '@nodepool/requestor/http';
import { CommandError } from '../command-context.js';
import { attemptOf, isActive, type LeaseOfNode } from './node-leases.js';
import type { Power, PowerContext } from './power.js';
import type { SlurmNode } from './slurm.js';

/** Nodes that are compared at once. */
const PARALLEL = 20;
/** Share of a cluster's leases that one comparison ends because Slurm does not know their nodes. */
const UNKNOWN_SHARE = 0.2;

export class Reconciler {
  private failures = 0;
  private readonly slots = new Slots(PARALLEL);

  constructor(
    private readonly context: PowerContext,
    private readonly power: Power,
  ) {}

  /** Resolves with the number of failures; the next comparison tries again. */
  async run(): Promise<number> {
    // In this order, each listed lease is older than the state of its node.
    const leases = await this.context.leases.active();
    const nodes = await this.context.slurm.nodes();
    await this.endUnknown(leases, nodes);
    for (const { node: name, lease } of superseded(leases)) {
      await this.attempt(name, () => this.power.release(name, lease, 'unknown', 'the node has a newer lease'));
    }
    const byNode = new Map(current(leases).map(({ node, lease }) => [node, lease]));
    const work = [...nodes.values()].map((node) =>
      this.attempt(node.name, () => this.reconcile(node, byNode.get(node.name))),
    );
    await Promise.all(work);
    return this.failures;
  }

  private async reconcile(node: SlurmNode, lease: LeaseDocument | undefined): Promise<void> {
    const { leases, options } = this.context;
    const { name, power } = node;
    if (power === 'off') {
      if (lease !== undefined) await this.power.release(name, lease, 'success', 'Slurm has powered the node down');
      // Slurm does not use a node that it has marked down, even if it can be resumed again.
      if (node.down !== undefined && options.labelOf(name) !== undefined) await this.context.slurm.reset(name);
      return;
    }
    if (lease === undefined) {
      const label = options.labelOf(name);
      if (!node.isCloud || label === undefined) return;
      if (power === 'starting') await leases.acquire(name, { ...options, label });
      else
        await this.failIf(name, ([newest, ...others]) => {
          if ([newest, ...others].some((each) => each !== undefined && isActive(each))) return undefined;
          return newest === undefined ? 'it has no lease' : (lossReason(newest) ?? 'its lease has ended');
        });
      return;
    }
    if (lossReason(lease) !== undefined) {
      await this.failIf(name, (all) => all.filter(isActive).map(lossReason)[0]);
      return;
    }
    await leases.renew(lease);
    // The ResumeProgram may be killed at any moment. One lease starts slurmd once, whatever calls this.
    if (power === 'starting' && lease.state === 'ready') await this.power.start(name, lease);
  }

  /** Tells Slurm that a node is lost, if a fresh look at its leases and its state confirms it. */
  private async failIf(
    name: string,
    reasonIn: (leases: readonly LeaseDocument[]) => string | undefined,
  ): Promise<void> {
    const { leases, slurm, note } = this.context;
    const reason = reasonIn(await leases.of(name));
    if (reason === undefined || (await slurm.node(name))?.power === 'off') return;
    note(`${name}: ${reason}; Slurm requeues its jobs`);
    await slurm.fail(name, reason);
  }

  /** Ends the leases of nodes that Slurm does not know. If there are many, they expire, as nothing renews them. */
  private async endUnknown(leases: readonly LeaseOfNode[], nodes: ReadonlyMap<string, SlurmNode>): Promise<void> {
    const unknown = leases.filter(({ node }) => !nodes.has(node));
    const limit = Math.max(1, Math.floor(leases.length * UNKNOWN_SHARE));
    if (nodes.size === 0 && leases.length > 0) throw new CommandError('Slurm has no nodes; no lease is changed');
    if (unknown.length > limit) {
      this.failures += 1;
      this.context.note(
        `Slurm does not know the nodes of ${unknown.length} of ${leases.length} leases, more than ${limit}; ` +
          `they are not released and will expire: ${unknown.map(({ node }) => node).join(', ')}`,
      );
      return;
    }
    for (const { node, lease } of unknown) {
      await this.attempt(node, () => this.power.release(node, lease, 'unknown', 'Slurm does not know the node'));
    }
  }

  private async attempt(name: string, work: () => Promise<void>): Promise<void> {
    try {
      await this.slots.run(this.context.interrupted, work);
    } catch (error) {
      if (this.context.interrupted.aborted) return;
      this.failures += 1;
      this.context.note(`${name}: ${reasonOf(error)}`);
    }
  }
}

/** Returns the newest lease of each node. */
function current(leases: readonly LeaseOfNode[]): readonly LeaseOfNode[] {
  return leases.filter((one) => !leases.some((other) => isNewer(other, one)));
}

function superseded(leases: readonly LeaseOfNode[]): readonly LeaseOfNode[] {
  return leases.filter((one) => leases.some((other) => isNewer(other, one)));
}

function isNewer(one: LeaseOfNode, other: LeaseOfNode): boolean {
  return one.node === other.node && attemptOf(one.lease) > attemptOf(other.lease);
}

/** Returns the reason why Slurm must not use the node of a lease any longer. */
function lossReason({ id, state, end, reasons, nodes: [node] }: LeaseDocument): string | undefined {
  if (end !== null || state === 'ended')
    return [`lease ${id} has ended (${end?.reason ?? state})`, ...reasons].join('; ');
  if (node?.state === 'lost') return `node ${node.id} is lost: ${node.reason ?? 'unknown reason'}`;
  return node?.interruption ? `its machine is lost: ${node.interruption.reason}` : undefined;
}
