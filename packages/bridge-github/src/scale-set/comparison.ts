/** Compares statistics, jobs and registrations of a scale set with GitHub, since messages can be lost. */

import type { Reconciled } from '@nodepool/core';
import type { BridgeContext } from '../context.js';
import type { ActionsService } from '../github/actions-service.js';
import type { Statistics } from '../github/documents.js';
import { isJobRunning, isNotFound } from '../github/errors.js';
import { AGENTS_DELETED } from '../metrics.js';
import type { Runner } from '../runners/runner.js';
import { AgentComparison } from './agents.js';
import type { Listener } from './listener.js';
import type { RunnerSet } from './runner-set.js';

export interface ComparisonOptions {
  readonly context: BridgeContext;
  readonly installation: string;
  readonly scaleSet: string;
  readonly service: ActionsService;
  readonly listener: Listener;
  readonly runners: RunnerSet;
  readonly enqueue: (runner: Runner) => void;
  readonly onStatistics: (statistics: Statistics) => void;
  /** Called with the names of all registered runners of the installation. */
  readonly onListed: (names: ReadonlySet<string>) => void;
}

export class Comparison {
  private readonly agents = new AgentComparison();

  constructor(private readonly options: ComparisonOptions) {}

  /** Forgets earlier listings, since the next ones may be of another session. */
  reset(): void {
    this.agents.reset();
  }

  async compare(signal: AbortSignal): Promise<Reconciled> {
    const { service, context, listener, runners, enqueue, onStatistics, onListed } = this.options;
    const { compareMs, clock } = context;
    const { scaleSet } = listener;
    // Without its session, another program may serve the scale set and its runners.
    if (scaleSet === undefined) return { requeueAfterMs: compareMs / 10 };
    runners.recoverRequests();
    for (const runner of runners.values()) if (runner.state === 'requested') enqueue(runner);
    const startedAt = clock.monotonic();
    const agents = await service.agents(signal);
    // Read after the listing: a registration that it does not have had no job any more then.
    const { statistics } = await service.scaleSet(scaleSet.id, signal);
    if (statistics !== undefined) onStatistics(statistics);
    if ((statistics?.available ?? 0) > 0) await this.acquireOffered(scaleSet.id, signal);
    onListed(new Set(agents.map(({ name }) => name)));
    const compared = runners.values().map(({ name, data, registeredAt = -Infinity }) => ({
      ...{ name, agent: data.agent, isRegistered: data.agent !== null && registeredAt < startedAt },
    }));
    const { orphans, gone } = this.agents.compare(agents, compared, { id: scaleSet.id, name: this.options.scaleSet });
    for (const name of gone) this.agentGone(name, startedAt);
    for (const { id, name } of orphans) await this.deleteOrphan(id, name, signal);
    return { requeueAfterMs: compareMs };
  }

  /** The process of a runner that has done its job is about to end. */
  private agentGone(name: string, at: number): void {
    const runner = this.options.runners.get(name);
    if (runner === undefined || runner.isDone) return;
    runner.isDone = true;
    runner.doneAt = at;
    this.options.enqueue(runner);
  }

  private async deleteOrphan(id: number, name: string, signal: AbortSignal): Promise<void> {
    const { service, context, listener, runners, installation, scaleSet } = this.options;
    if (runners.isRecorded(name) || listener.scaleSet === undefined) return;
    try {
      await service.deleteAgent(id, signal);
      context.log.info('Deleted a registration without a runner', { runner: name, agent: id });
      context.metrics.count(AGENTS_DELETED, { installation, scale_set: scaleSet });
    } catch (error) {
      // GitHub ends a job whose runner is silent, and then its registration.
      if (!isJobRunning(error) && !isNotFound(error)) throw error;
    }
  }

  private async acquireOffered(id: number, signal: AbortSignal): Promise<void> {
    const { listener, service } = this.options;
    try {
      await listener.acquire(await service.offeredJobs(id, signal), signal);
    } catch (error) {
      // Services that assign jobs themselves need not know the call.
      if (!isNotFound(error)) throw error;
    }
  }
}
