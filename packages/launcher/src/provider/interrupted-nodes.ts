/**
 * The nodes in use and on hold of a provider whose instance is lost, according to its listings. Their records say so
 * once enough of the listings agree; nothing else is changed, because the nodes belong to their requestors.
 */

import type { Logger, Node, NodeInterruption } from '@nodepool/core';
import type { NodeEntry } from '@nodepool/store';
import { unixSeconds, type LauncherContext } from '../context.js';
import { INTERRUPTED_NODES, offerLabels } from '../metrics/launcher-metrics.js';
import {
  confirmationDue,
  CONFIRMED_AFTER_MS,
  isMissing,
  type Comparison,
  type InstanceListing,
  type Loss,
} from './instance-verdict.js';

/** Number of attempts to write an interruption while the requestor changes the record. */
const MAX_WRITES = 5;
/**
 * Time (ms) after the announced end of an instance from which on a listing that shows it running revokes the
 * interruption. Earlier, another launcher may have received the announcement.
 */
const REVOKED_AFTER_MS = 300_000;

export interface InterruptedNodesOptions {
  readonly context: LauncherContext;
  readonly log: Logger;
  /** Name of the provider. */
  readonly provider: string;
  /** Aborts when the provider is retired. */
  readonly signal: AbortSignal;
}

export class InterruptedNodes {
  private losses: ReadonlyMap<string, Loss> = new Map();

  constructor(private readonly options: InterruptedNodesOptions) {}

  /** Returns when a listing may confirm what the latest one has shown (`Clock.monotonic`, ms), or undefined. */
  confirmationDue(latest: InstanceListing): number | undefined {
    return confirmationDue(this.losses.values(), latest);
  }

  /** Begins the confirmation of all losses again, because a listing is not compared with the nodes. */
  skip(): void {
    this.losses = new Map();
  }

  /**
   * Takes what a listing shows, and writes it to the records. `trustsMissing` is false if the listing lacks so many
   * instances that it is probably wrong. Resolves once the records are written.
   */
  async apply({ askedAt }: InstanceListing, { lost, foundAgain }: Comparison, trustsMissing: boolean): Promise<void> {
    const losses = new Map<string, Loss>();
    const writes: Promise<void>[] = [];
    for (const entry of foundAgain) {
      if (isOccupied(entry) && this.isRevoked(entry.node)) writes.push(this.write(entry, null));
    }
    for (const { entry, verdict } of lost) {
      if (!isOccupied(entry)) continue;
      const { kind, reason, endsAt } = verdict;
      const known = this.losses.get(entry.id);
      const loss = { kind, reason, first: known?.kind === kind ? known.first : askedAt };
      losses.set(entry.id, loss);
      const isConfirmed = askedAt - loss.first >= CONFIRMED_AFTER_MS[kind];
      if (!isConfirmed || (isMissing(kind) && !trustsMissing)) continue;
      const time = unixSeconds(this.options.context);
      const interruption = { kind, reason, time, ends_at: endsAt === undefined ? null : endsAt / 1000 };
      if (isNews(entry.node.interruption, interruption)) writes.push(this.write(entry, interruption));
    }
    this.losses = losses;
    await Promise.all(writes);
  }

  private isRevoked({ interruption }: Node): boolean {
    if (interruption === null) return false;
    if (interruption.kind !== 'reclaimed') return true;
    const end = (interruption.ends_at ?? interruption.time) * 1000;
    return this.options.context.clock.now() >= end + REVOKED_AFTER_MS;
  }

  /** Writes the interruption. Repeats it if the requestor has changed the record meanwhile and still uses the node. */
  private async write(known: NodeEntry, interruption: NodeInterruption | null): Promise<void> {
    const { context, signal, log } = this.options;
    const { nodes } = context.store;
    try {
      let entry: NodeEntry | undefined = known;
      for (let writes = 0; writes < MAX_WRITES && !signal.aborted; writes += 1) {
        if (await nodes.setInterruption(entry, interruption, { signal })) {
          this.report(entry.node, interruption);
          return;
        }
        entry = await nodes.read(known.id, { signal });
        if (entry === undefined || !isSameUse(known, entry)) return;
        if (interruption !== null && !isNews(entry.node.interruption, interruption)) return;
      }
    } catch (error) {
      if (signal.aborted) return;
      log.warn('The loss of an instance could not be written to the record of its node; the next listing retries', {
        node_id: known.id,
        error,
      });
    }
  }

  private report(node: Node, interruption: NodeInterruption | null): void {
    const { context, provider, log } = this.options;
    const by = `${provider}/${node.pool ?? ''}`;
    const { state, external_id: externalId, allocated_to: request } = node;
    const fields = { node_id: node.id, state, external_id: externalId, node_request_id: request };
    if (interruption === null) {
      log.warn('The instance of a node runs again', fields);
      context.decisions.record('node', node.id, by, 'has its instance again', 'the cloud lists it as running');
      return;
    }
    const { kind, reason, ends_at: endsAt } = interruption;
    context.metrics.count(INTERRUPTED_NODES, { ...offerLabels(node), provider, state, reason: kind });
    const ends = endsAt === null ? undefined : new Date(endsAt * 1000).toISOString();
    log.warn('A node loses or has lost its instance; its holder is notified', { ...fields, reason, ends });
    context.decisions.record('node', node.id, by, 'loses or has lost its instance', reason);
  }
}

/** Returns true if the node belongs to a requestor, or to a user. An unlocked node in use is about to be deleted. */
export function isOccupied({ node, locked }: NodeEntry): boolean {
  if (node.external_id === null) return false;
  return node.state === 'hold' || (node.state === 'in-use' && locked);
}

function isSameUse({ node: before }: NodeEntry, after: NodeEntry): boolean {
  return isOccupied(after) && JSON.stringify(after.node.external_id) === JSON.stringify(before.external_id);
}

/**
 * Returns true if the record does not say yet what a launcher has found. The first finding remains, because an instance
 * that is taken away is missing later; only a stopped instance can be lost for another reason.
 */
function isNews(known: NodeInterruption | null, found: NodeInterruption): boolean {
  if (known === null) return true;
  if (known.kind !== found.kind) return known.kind === 'stopped';
  return known.ends_at === null && found.ends_at !== null;
}
