/** Deletions of nodes in progress, and the results of recent ones, by node. */

import type { ExternalId } from '../../model/node.js';
import { TaskOrigin, type TaskSupervisor } from '../../runtime/tasks.js';
import type { RandomSource } from '../../runtime/random.js';
import type { Instance, NodeCleanup } from '../api.js';
import { logCloudDeletion } from '../cloud-deletion.js';
import { DriverError } from '../errors.js';
import type { Advance, MachineCall, StateMachine } from '../state-machine-api.js';
import { ListingDeadline, type ListingDeadlineOptions } from './attempt-lookup.js';
import type { InstanceIdentity } from './instance-identity.js';
import type { MachineWork } from './machine-run.js';
import type { MachineRunner } from './machine-runner.js';
import { PersistentDeletion } from './persistent-deletion.js';
import type { JsonValue } from '../../model/json.js';

/** Maximum number of results kept; the oldest are discarded first. */
const MAX_RESULTS = 1000;

export interface NodeCleanupsOptions {
  readonly provider: string;
  /** See `Adapter.uniqueIds`. */
  readonly uniqueIds: boolean;
  readonly runner: MachineRunner;
  readonly random: RandomSource;
  readonly tasks: TaskSupervisor;
  /** Receives the failures of deletions, which are repeated. */
  readonly onRetry?: ((error: DriverError) => void) | undefined;
  readonly makeDeletion: (externalId: ExternalId, saved: JsonValue, cleanup: NodeCleanup) => StateMachine;
}

type CleanupResult = { readonly error: unknown } | undefined;

/** Accepts a single listing, provided that it is requested from now on. */
const AT_ONCE: ListingDeadlineOptions = { settleRounds: 1, settleMs: 0 };

export class NodeCleanups {
  private readonly underway = new Map<string, Promise<CleanupResult>>();
  private readonly results = new Map<string, CleanupResult>();
  /** Nodes for which this process certainly created no resources; see `madeNothing`. */
  private readonly empty = new Set<string>();
  private readonly origin = new TaskOrigin();

  constructor(private readonly options: NodeCleanupsOptions) {}

  /** Starts a cleanup, or shares the one in progress for the same node. */
  start(cleanup: NodeCleanup): void {
    const { nodeId } = cleanup;
    if (this.underway.has(nodeId)) return;
    this.results.delete(nodeId);
    const ending = this.supervise(cleanup);
    this.underway.set(nodeId, ending);
    const work = async (): Promise<void> => {
      await ending;
    };
    this.options.tasks.run(`cleanup of node ${nodeId}`, work, undefined, this.origin);
  }

  /** Resolves when the node's cleanup is done. Rejects with the error that stopped it. */
  async wait(nodeId: string): Promise<void> {
    if (!this.underway.has(nodeId) && !this.results.has(nodeId)) {
      throw new DriverError('unexpected', `no cleanup of node ${nodeId} was started; call cleanupNode first`);
    }
    const ending = (await this.underway.get(nodeId)) ?? this.results.get(nodeId);
    if (ending !== undefined) throw ending.error;
  }

  /**
   * Records the end of a node's launch in this process. `madeNothing` is true if the launch certainly left no
   * resources; a cleanup then need not wait until listings include recently created instances.
   */
  launchEnded(nodeId: string, madeNothing: boolean): void {
    this.empty.delete(nodeId);
    if (!madeNothing) return;
    this.empty.add(nodeId);
    dropOldest(this.empty);
  }

  /** Discards the results of a node whose record was deleted. */
  forget(nodeId: string): void {
    this.results.delete(nodeId);
    this.empty.delete(nodeId);
  }

  private async supervise(cleanup: NodeCleanup): Promise<CleanupResult> {
    let ending: CleanupResult;
    try {
      const { externalId } = cleanup;
      await (externalId === null
        ? this.cleanByTags(cleanup)
        : this.delete(externalId, cleanup.launchAttempt, cleanup, 'its node is deleted'));
    } catch (error) {
      ending = { error };
    }
    this.underway.delete(cleanup.nodeId);
    this.remember(cleanup.nodeId, ending);
    return ending;
  }

  private remember(nodeId: string, ending: CleanupResult): void {
    this.results.set(nodeId, ending);
    dropOldest(this.results);
  }

  private delete(
    externalId: ExternalId,
    attempt: string | null,
    cleanup: NodeCleanup,
    because: string,
  ): Promise<unknown> {
    const { provider, uniqueIds, runner, random, onRetry, makeDeletion } = this.options;
    const { installation, nodeId } = cleanup;
    const known = cleanup.externalId !== null;
    const identity: InstanceIdentity = { provider, installation, nodeId, attempt: attempt === '' ? null : attempt };
    let isLogged = false;
    const machine = new PersistentDeletion({
      externalId,
      identity: uniqueIds ? undefined : identity,
      saved: known ? cleanup.saved : null,
      random,
      onFailedAttempt: cleanup.onFailedAttempt,
      onWaiting: cleanup.onWaiting,
      make: (saved) => {
        if (!isLogged) logCloudDeletion(cleanup.log, { kind: 'instance', externalId }, because);
        isLogged = true;
        return makeDeletion(externalId, saved, cleanup);
      },
    });
    return runner.run({
      name: `deletion of the instance of node ${cleanup.nodeId}`,
      kind: 'delete',
      nodeId: cleanup.nodeId,
      makeMachine: () => machine,
      call: cleanup,
      obstacle: () => machine.lastError,
      onRetry,
      progress: known ? progressOf(cleanup) : undefined,
    });
  }

  /**
   * Deletes the instances of the recorded launch attempt, for a node whose external id is unknown. A single listing
   * without such an instance proves nothing, as listings may lack the newest instances. Instances of earlier attempts
   * are leaked resources.
   */
  private async cleanByTags(cleanup: NodeCleanup): Promise<void> {
    const listingDeadline = this.empty.has(cleanup.nodeId) ? AT_ONCE : {};
    for (;;) {
      const found = await this.find(cleanup, listingDeadline);
      if (found.length === 0) return;
      const results = await Promise.allSettled(
        found.map(({ externalId, tags }) =>
          this.delete(
            externalId,
            tags.nodepool_launch_attempt ?? null,
            cleanup,
            'it has the tags of a node that is deleted',
          ),
        ),
      );
      for (const result of results) if (result.status === 'rejected') throw result.reason;
    }
  }

  private async find(cleanup: NodeCleanup, listingDeadline: ListingDeadlineOptions): Promise<readonly Instance[]> {
    const { provider, runner } = this.options;
    const machine = new TagSearch(provider, cleanup, listingDeadline);
    await runner.run({
      name: `search for instances of node ${cleanup.nodeId}`,
      kind: 'delete',
      nodeId: cleanup.nodeId,
      makeMachine: () => machine,
      call: cleanup,
    });
    return machine.found;
  }
}

function dropOldest(remembered: Map<string, unknown> | Set<string>): void {
  if (remembered.size <= MAX_RESULTS) return;
  for (const oldest of remembered.keys()) {
    remembered.delete(oldest);
    return;
  }
}

/** Saves only machines with state to save, since a deletion can restart at any time. */
function progressOf(cleanup: NodeCleanup): NonNullable<MachineWork['progress']> {
  return (machine) => {
    const saved = machine.save();
    return saved === null ? undefined : () => cleanup.save({ machine: saved });
  };
}

/** Waits until listings show instances of a node, or until the instances are certainly absent. */
class TagSearch implements StateMachine {
  found: readonly Instance[] = [];
  complete = false;
  readonly externalId = undefined;
  private asked = false;
  private readonly listingDeadline: ListingDeadline;

  constructor(
    private readonly provider: string,
    private readonly cleanup: NodeCleanup,
    listingDeadline: ListingDeadlineOptions,
  ) {
    this.listingDeadline = new ListingDeadline(listingDeadline);
  }

  get state(): string {
    return this.complete ? 'complete' : 'looking for instances';
  }

  advance({ listing }: MachineCall): Advance {
    if (!this.asked || listing === undefined) {
      this.asked = true;
      return { next: 'listing' };
    }
    this.found = listing
      .byTag('nodepool_node_id', this.cleanup.nodeId)
      .filter(({ deleted, tags }) => !deleted && this.isOurs(tags));
    if (this.found.length === 0 && !this.listingDeadline.missedIn(listing)) return { next: 'listing' };
    this.complete = true;
    return { next: 'complete' };
  }

  save(): null {
    return null;
  }

  /**
   * Compares the complete identity. A node whose record names no attempt has created nothing. The recorded attempt
   * identifies an instance without `nodepool_installation`, too.
   */
  private isOurs(tags: Instance['tags']): boolean {
    const { nodeId, pool, installation, launchAttempt } = this.cleanup;
    return (
      isNamed(launchAttempt) &&
      tags.nodepool_launch_attempt === launchAttempt &&
      tags.nodepool_node_id === nodeId &&
      tags.nodepool_provider_name === this.provider &&
      tags.nodepool_pool_name === pool &&
      (tags.nodepool_installation ?? installation) === installation
    );
  }
}

function isNamed(attempt: string | null): attempt is string {
  return attempt !== null && attempt !== '';
}
