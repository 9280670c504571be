/** Deletions of nodes in progress, and how the last ones ended, by node. */

import type { ExternalId } from '../../model/node.js';
import type { TaskSupervisor } from '../../runtime/tasks.js';
import type { RandomSource } from '../../runtime/random.js';
import type { Instance, NodeCleanup } from '../api.js';
import { DriverError } from '../errors.js';
import type { Advance, Listing, MachineCall, StateMachine } from '../state-machine-api.js';
import type { MachineWork } from './machine-run.js';
import type { MachineRunner } from './machine-runner.js';
import { PersistentDeletion } from './persistent-deletion.js';
import type { JsonValue } from '../../model/json.js';

/** Ended cleanups that nobody may ask about any more are forgotten, the oldest first. */
const REMEMBERED = 1000;

export interface NodeCleanupsOptions {
  readonly provider: string;
  readonly runner: MachineRunner;
  readonly random: RandomSource;
  readonly tasks: TaskSupervisor;
  readonly makeDeletion: (externalId: ExternalId, saved: JsonValue, cleanup: NodeCleanup) => StateMachine;
}

type Ending = { readonly error: unknown } | undefined;

export class NodeCleanups {
  private readonly underway = new Map<string, Promise<Ending>>();
  private readonly endings = new Map<string, Ending>();

  constructor(private readonly options: NodeCleanupsOptions) {}

  /** Starts a cleanup unless one of the same node is under way, which is shared then. */
  start(cleanup: NodeCleanup): void {
    const { nodeId } = cleanup;
    if (this.underway.has(nodeId)) return;
    this.endings.delete(nodeId);
    const ending = new Promise<Ending>((resolve) => {
      this.options.tasks.run(`cleanup of node ${nodeId}`, async () => {
        resolve(await this.supervise(cleanup));
      });
    });
    this.underway.set(nodeId, ending);
  }

  /** Resolves when the node's cleanup is done, rejects with what stopped it. */
  async wait(nodeId: string): Promise<void> {
    if (!this.underway.has(nodeId) && !this.endings.has(nodeId)) {
      throw new DriverError('unexpected', `nobody started a cleanup of node ${nodeId}; call cleanupNode first`);
    }
    const ending = (await this.underway.get(nodeId)) ?? this.endings.get(nodeId);
    if (ending !== undefined) throw ending.error;
  }

  /** The node is no more; so is the interest in its cleanup. */
  forget(nodeId: string): void {
    this.endings.delete(nodeId);
  }

  private async supervise(cleanup: NodeCleanup): Promise<Ending> {
    let ending: Ending;
    try {
      await (cleanup.externalId === null ? this.cleanByTags(cleanup) : this.delete(cleanup.externalId, cleanup));
    } catch (error) {
      ending = { error };
    }
    this.underway.delete(cleanup.nodeId);
    this.remember(cleanup.nodeId, ending);
    return ending;
  }

  private remember(nodeId: string, ending: Ending): void {
    this.endings.set(nodeId, ending);
    if (this.endings.size <= REMEMBERED) return;
    for (const oldest of this.endings.keys()) {
      this.endings.delete(oldest);
      return;
    }
  }

  private async delete(externalId: ExternalId, cleanup: NodeCleanup): Promise<void> {
    const { runner, random, makeDeletion } = this.options;
    const known = cleanup.externalId !== null;
    const machine = new PersistentDeletion(externalId, known ? cleanup.saved : null, random, (saved) =>
      makeDeletion(externalId, saved, cleanup),
    );
    await runner.run({
      name: `deletion of the instance of node ${cleanup.nodeId}`,
      kind: 'delete',
      nodeId: cleanup.nodeId,
      makeMachine: () => machine,
      call: cleanup,
      obstacle: () => machine.lastError,
      ...(known ? { progress: progressOf(cleanup) } : {}),
    });
  }

  /** It is not known whether there is an instance: whatever carries the node's tags goes, until a fresh listing shows none. */
  private async cleanByTags(cleanup: NodeCleanup): Promise<void> {
    for (;;) {
      const found = await this.find(cleanup);
      if (found.length === 0) return;
      const results = await Promise.allSettled(found.map((instance) => this.delete(instance.externalId, cleanup)));
      for (const result of results) if (result.status === 'rejected') throw result.reason;
    }
  }

  private async find(cleanup: NodeCleanup): Promise<readonly Instance[]> {
    const machine = new FreshListing();
    await this.options.runner.run({
      name: `search for instances of node ${cleanup.nodeId}`,
      kind: 'delete',
      nodeId: cleanup.nodeId,
      makeMachine: () => machine,
      call: cleanup,
    });
    const { provider } = this.options;
    const tagged = machine.listing?.byTag('nodepool_node_id', cleanup.nodeId) ?? [];
    return tagged.filter((instance) => !instance.deleted && instance.tags.nodepool_provider_name === provider);
  }
}

/** Deletion can begin anew at any time, so only machines that have something to remember are saved. */
function progressOf(cleanup: NodeCleanup): NonNullable<MachineWork['progress']> {
  return (machine) => {
    const saved = machine.save();
    return saved === null ? undefined : () => cleanup.save({ machine: saved });
  };
}

/** Waits for a listing, no more. */
class FreshListing implements StateMachine {
  listing: Listing | undefined;
  readonly externalId = undefined;
  private asked = false;

  get state(): string {
    return this.complete ? 'complete' : 'looking for instances';
  }

  get complete(): boolean {
    return this.listing !== undefined;
  }

  advance(call: MachineCall): Advance {
    if (!this.asked || call.listing === undefined) {
      this.asked = true;
      return { next: 'listing' };
    }
    this.listing = call.listing;
    return { next: 'complete' };
  }

  save(): null {
    return null;
  }
}
