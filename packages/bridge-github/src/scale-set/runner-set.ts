/** The runners of a scale set: those of this term, and those that an earlier bridge has left in ZooKeeper. */

import type { JsonValue } from '@nodepool/core';
import { LeaseLostError, type Lease } from '@nodepool/requestor';
import { runnerDataIn, type RunnerData } from '@nodepool/store/github';
import type { BridgeContext } from '../context.js';
import { Runner } from '../runners/runner.js';

export interface RunnerSetOptions {
  readonly context: BridgeContext;
  readonly installation: string;
  readonly scaleSet: string;
  /** Called for a new runner. */
  readonly onAdded: (runner: Runner) => void;
  /** Called for the runner of a node that an earlier bridge has left. */
  readonly onAdopted: (runner: Runner) => void;
}

/** Name of the owner of the durable leases of a scale set. */
export function leaseOwner(installation: string, scaleSet: string): string {
  return `nodepool-github/${installation}/${scaleSet}`;
}

export class RunnerSet {
  private readonly byName = new Map<string, Runner>();
  private readonly owner: string;

  constructor(private readonly options: RunnerSetOptions) {
    this.owner = leaseOwner(options.installation, options.scaleSet);
  }

  get size(): number {
    return this.byName.size;
  }

  get(name: string): Runner | undefined {
    return this.byName.get(name);
  }

  values(): readonly Runner[] {
    return [...this.byName.values()];
  }

  add(data: RunnerData): Runner {
    const runner = new Runner(data, this.options.context.clock.monotonic());
    this.byName.set(data.runner, runner);
    this.options.onAdded(runner);
    return runner;
  }

  delete(name: string): void {
    this.byName.delete(name);
  }

  /** Returns the name of the runner of this scale set that a record belongs to; undefined if there is none. */
  nameIn(value: JsonValue): string | undefined {
    return this.ownData(value)?.runner;
  }

  /** Continues with the requests and the nodes that an earlier bridge has left. */
  async recover(signal: AbortSignal): Promise<void> {
    const held = await this.options.context.requestor.leases(this.owner, { signal });
    await Promise.all(held.flatMap(({ nodes }) => nodes).map((id) => this.recoverNode(id, signal)));
    this.recoverRequests();
  }

  /** Adds the requests that are not known yet: the cache may have lagged behind when the term began. */
  recoverRequests(): void {
    for (const { id, request } of this.options.context.store.requests.all()) {
      const data = this.ownData(request.requestor_data);
      if (data !== undefined && !this.byName.has(data.runner)) this.add(data).requestId = id;
    }
  }

  /** Returns true if the runner is known, or if a request or a node names it. */
  isRecorded(name: string): boolean {
    if (this.byName.has(name)) return true;
    const { requests, nodes } = this.options.context.store;
    for (const { request } of requests.all()) if (this.nameIn(request.requestor_data) === name) return true;
    for (const { node } of nodes.all()) {
      if (node.state === 'in-use' && this.nameIn(node.user_data) === name) return true;
    }
    return false;
  }

  private async recoverNode(id: string, signal: AbortSignal): Promise<void> {
    const { context, onAdopted } = this.options;
    const { requestor, store, log } = context;
    let lease: Lease;
    try {
      const entry = await store.nodes.read(id, { signal });
      lease = await requestor.adoptLease(this.owner, [id], { signal });
      const data = this.ownData(entry?.node.user_data ?? null);
      if (data === undefined || this.byName.has(data.runner)) {
        log.warn('Returning a node of the bridge whose runner is not known', { node_id: id });
        await lease.return();
        return;
      }
      const runner = this.add(data);
      runner.lease = lease;
      // Until the node answers, its process may run.
      runner.isStopped = !data.started;
      onAdopted(runner);
    } catch (error) {
      // An operator has deleted the node meanwhile.
      if (!(error instanceof LeaseLostError)) throw error;
      log.info('A node of the bridge is lost', { node_id: id });
    }
  }

  private ownData(value: JsonValue): RunnerData | undefined {
    const { installation, scaleSet } = this.options;
    const data = runnerDataIn(value);
    return data?.installation === installation && data.scaleSet === scaleSet ? data : undefined;
  }
}
