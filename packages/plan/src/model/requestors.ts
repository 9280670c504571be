/** Requestors that create the requests of the day, use their nodes, and return them. */

import { sleep, type Clock, type NodeRequest, type RandomSource } from '@nodepool/core';
import { requestPath, type Store } from '@nodepool/store';
import type { DayRequest } from '../day/day.js';
import type { Draws } from './draws.js';

/** Name of the owner of the locks. */
const OWNER = 'plan';
/** Interval (ms) and number of the attempts to lock the nodes of a fulfilled request. */
const RETRY_MS = 1000;
const MAX_LOCK_ATTEMPTS = 60;

/** The end of a request. */
export interface Outcome {
  readonly request: DayRequest;
  readonly result: 'fulfilled' | 'failed' | 'cancelled';
  readonly waitedMs: number;
  /** Provider of the first node; undefined without nodes. */
  readonly provider: string | undefined;
  /** Reasons of the pools; empty unless it failed. */
  readonly reasons: readonly string[];
}

export interface RequestorOptions {
  readonly clock: Clock;
  /** The store of the launcher: a second one would double the cost of a replay. */
  readonly store: Store;
  readonly random: RandomSource;
  readonly draws: Draws;
  readonly onOutcome: (outcome: Outcome) => void;
  /** Called with a failure of the replay itself. */
  readonly onError: (error: unknown) => void;
}

export class Requestors {
  /** Measured requests that have no outcome yet, whether created or not. */
  open = 0;
  private readonly waiting = new Map<string, (request: NodeRequest | undefined) => void>();

  constructor(private readonly options: RequestorOptions) {
    options.store.requests.onChange(({ id, after }) => {
      if (after !== undefined && after.request.state !== 'fulfilled' && after.request.state !== 'failed') return;
      const answer = this.waiting.get(id);
      this.waiting.delete(id);
      answer?.(after?.request);
    });
  }

  /** Creates each request at its time; those of the time before at once. */
  start(requests: readonly DayRequest[]): void {
    const { random, draws } = this.options;
    const planned = requests.map((request) => ({ request, heldMs: draws.held(request, random) }));
    this.open = requests.filter(({ isInitial }) => !isInitial).length;
    for (const { request, heldMs } of planned) if (request.isInitial) this.live(request, heldMs);
    this.createNext(
      planned.filter(({ request }) => !request.isInitial),
      0,
    );
  }

  /** Schedules one request after the other, so that few timers are pending. */
  private createNext(planned: readonly PlannedRequest[], index: number): void {
    const next = planned[index];
    if (next === undefined) return;
    const { clock } = this.options;
    clock.schedule(Math.max(0, next.request.createdMs - clock.now()), () => {
      this.live(next.request, next.heldMs);
      this.createNext(planned, index + 1);
    });
  }

  private live(request: DayRequest, heldMs: readonly number[]): void {
    this.requestAndUse(request, heldMs).catch(this.options.onError);
  }

  private async requestAndUse(request: DayRequest, heldMs: readonly number[]): Promise<void> {
    const { clock, store } = this.options;
    const startedAt = clock.monotonic();
    const id = await this.submit(request);
    const answered = await this.answer(id, request.patienceMs);
    const waitedMs = clock.monotonic() - startedAt;
    const end = (result: Outcome['result'], provider?: string, reasons: readonly string[] = []): void => {
      if (!request.isInitial) this.open -= 1;
      this.options.onOutcome({ request, result, waitedMs, provider, reasons });
    };
    if (answered?.state !== 'fulfilled') {
      end(answered === undefined ? 'cancelled' : 'failed', undefined, Object.values(answered?.decline_reasons ?? {}));
      await store.requests.remove(id);
      return;
    }
    end('fulfilled', store.nodes.get(answered.nodes[0] ?? '')?.node.provider ?? undefined);
    await this.use(id, answered.nodes, heldMs);
  }

  private submit({ labels, tenant, requestor, priority, relativePriority }: DayRequest): Promise<string> {
    const { clock, store } = this.options;
    const now = clock.now() / 1000;
    return store.requests.submit(
      {
        ...{ state: 'requested', state_time: now, created_time: now, node_types: labels, nodes: [] },
        ...{ declined_by: [], decline_reasons: {}, reuse: true, provider: null, event_id: null },
        ...{ requestor, requestor_data: null, tenant_name: tenant, relative_priority: relativePriority },
      },
      { priority },
    );
  }

  /** Resolves with the fulfilled or failed request, or with undefined once the requestor has lost its patience. */
  private answer(id: string, patienceMs: number | undefined): Promise<NodeRequest | undefined> {
    const { clock } = this.options;
    return new Promise((resolve) => {
      const timer =
        patienceMs === undefined
          ? undefined
          : clock.schedule(patienceMs, () => {
              this.waiting.delete(id);
              resolve(undefined);
            });
      this.waiting.set(id, (request) => {
        timer?.cancel();
        resolve(request);
      });
    });
  }

  /** Locks the nodes and removes the request, in one transaction, and returns each node after its time. */
  private async use(id: string, nodes: readonly string[], heldMs: readonly number[]): Promise<void> {
    const { clock, store } = this.options;
    const targets = nodes.map((node) => ({ id: node, change: { state: 'in-use' } as const }));
    const after = [{ type: 'delete', path: requestPath(id) } as const];
    for (let attempt = 1; ; attempt += 1) {
      const handles = await store.nodes.tryLockAll(targets, { owner: OWNER, after });
      if (handles !== undefined) {
        await Promise.all(
          handles.map(async (handle, index) => {
            await sleep(clock, heldMs[index] ?? 0);
            await handle.unlock({ state: 'used' });
          }),
        );
        return;
      }
      if (attempt === MAX_LOCK_ATTEMPTS) throw new Error(`the nodes of request ${id} could not be locked`);
      await sleep(clock, RETRY_MS);
    }
  }
}

interface PlannedRequest {
  readonly request: DayRequest;
  readonly heldMs: readonly number[];
}
