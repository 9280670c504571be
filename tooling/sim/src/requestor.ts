/**
 * A simulated requestor with the behaviour of Zuul: it requests nodes, cancels requests, uses nodes, and may die at any
 * time.
 */

import { isJsonObject, type JsonObject, type RandomSource, sleep, type Clock } from '@nodepool/core';
import { isZooKeeperError, lockRecipe, type HeldLock, type LockRecipe, type ZooKeeper } from '@nodepool/zookeeper';
import type { SimulatedZooKeeperServer } from '@nodepool/zookeeper/simulated';
import type { JobResult } from '@nodepool/requestor';
import { announcing } from './announcing.js';
import { between, oneOf } from './chance.js';
import type { Checker } from './checker.js';
import { nodesOf, textOf } from './rules/values.js';
import { LABELS, TENANTS } from './site.js';

const REQUESTS = '/nodepool/requests';
const CHECK_INTERVAL_MS = 250;
const GIVE_UP_RETRY_MS = 1000;
const MAX_LABELS = 5;
/** Maximum number of nodes in a request of the tenant with a limit. A larger request would be declined. */
const MAX_OF_BOUNDED = 4;

/** A label that no launcher offers, so that every pool declines the request. */
const UNKNOWN_LABEL = 'unknown';

/** Probabilities of a requestor's actions, 0 to 1. */
const CHANCES = {
  withdraw: 0.15,
  withdrawLocked: 0.2,
  unknownLabel: 0.1,
  reprioritise: 0.3,
  leave: 0.05,
  die: 0.08,
  hold: 0.1,
  provider: 0.1,
  noReuse: 0.3,
};

export interface RequestorEnvironment {
  readonly server: SimulatedZooKeeperServer;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly checker: Checker;
  /** Name in `requestor_data`, which identifies the request if the answer to its creation is lost. */
  readonly name: string;
  /** The only provider to use; undefined for a random choice. */
  readonly provider?: string | undefined;
  /** Labels to choose from; undefined for those of cloud providers. */
  readonly labels?: readonly string[] | undefined;
  /** Returns the result of a job on a node of an upload; undefined in a run without images. */
  jobResult(imageId: string): JobResult | undefined;
  /** Milliseconds since the start. */
  now(): number;
}

/** The lifecycle of one request. Never rejects; the checker judges the outcome. */
export class SimulatedRequestor {
  /** Id of the submitted request; undefined before and after its life. */
  request: string | undefined;
  done = false;
  /** Time of the submission, milliseconds since the start. */
  private askedAt: number | undefined;
  private taking = false;
  /** True after a restore that deleted its records: it then changes nothing. */
  private outdated = false;
  private zooKeeper: ZooKeeper;
  private locks: LockRecipe;

  constructor(private readonly environment: RequestorEnvironment) {
    this.zooKeeper = announcing(environment);
    this.locks = lockRecipe(this.zooKeeper, { identifier: 'requestor', random: environment.random });
  }

  /**
   * Called after ZooKeeper was restored to its state at `to`, milliseconds since the start. A younger request no longer
   * exists, and its id and those of its nodes may be reused. An older request continues to wait. The session ends,
   * because a surviving one would hold locks that it has released since.
   */
  restored(to: number): void {
    this.environment.server.expireSession(this.zooKeeper);
    if (this.askedAt === undefined) return;
    if (this.askedAt <= to && this.request !== undefined && !this.taking) return;
    this.outdated = true;
    this.request = undefined;
  }

  async live(): Promise<void> {
    try {
      await this.requestAndUse();
    } catch (error) {
      // A failure at an unfavourable moment: the requestor cleans up like a restarted one.
      this.environment.checker.step(`requestor of ${this.request ?? 'nothing'} gives up: ${String(error)}`);
      await this.die();
    } finally {
      await this.zooKeeper.close();
      this.done = true;
    }
  }

  private async requestAndUse(): Promise<void> {
    const id = await this.submit();
    if (this.chance('withdrawLocked')) this.withdrawWhenLocked(id);
    const state = await this.wait(id);
    if (this.outdated) return;
    if (state !== 'fulfilled' || this.chance('leave')) {
      await this.withdraw(id);
      return;
    }
    this.taking = true;
    const taken = await this.take(id);
    await sleep(this.environment.clock, between(this.environment.random, 500, 30_000));
    if (this.chance('die')) {
      this.environment.checker.step(`requestor of ${taken.ids.join(', ')} dies`);
      return;
    }
    await this.giveBack(taken);
  }

  private async submit(): Promise<string> {
    const { random, clock } = this.environment;
    const known = this.environment.labels ?? LABELS;
    const count = random.next() < 0.6 ? 1 : between(random, 1, MAX_LABELS + 1);
    const labels: string[] = Array.from(
      { length: count },
      () => known[Math.floor(random.next() ** 2 * known.length)] ?? 'small',
    );
    if (this.chance('unknownLabel')) labels.push(UNKNOWN_LABEL);
    const now = clock.now() / 1000;
    const request: JsonObject = {
      state: 'requested',
      state_time: now,
      created_time: now,
      declined_by: [],
      node_types: labels,
      nodes: [],
      reuse: !this.chance('noReuse'),
      requestor: 'zuul',
      requestor_data: { kept: now, name: this.environment.name },
      provider: this.environment.provider ?? (this.chance('provider') ? 'beta' : null),
      relative_priority: Math.floor(random.next() * 5),
      event_id: 'event',
      tenant_name: count > MAX_OF_BOUNDED ? TENANTS[0] : (oneOf(random, TENANTS) ?? null),
      span_info: { trace: 1 },
    };
    const priority = ['100', '200', '300'][Math.floor(random.next() * 3)] ?? '200';
    const { path } = await this.zooKeeper.create(`${REQUESTS}/${priority}-`, encode(request), {
      mode: 'persistent-sequential',
    });
    this.request = path.slice(REQUESTS.length + 1);
    this.askedAt = this.environment.now();
    return this.request;
  }

  /** Waits until the request is answered, or cancels it after a while. */
  private async wait(id: string): Promise<unknown> {
    const { clock, checker } = this.environment;
    const impatientAt = this.chance('withdraw')
      ? clock.monotonic() + between(this.environment.random, 1, 20_000)
      : Infinity;
    let reprioritiseAt = this.chance('reprioritise')
      ? clock.monotonic() + between(this.environment.random, 1, 10_000)
      : Infinity;
    for (;;) {
      await sleep(clock, CHECK_INTERVAL_MS);
      if (this.outdated) return 'forsaken';
      // Reads a state that is as old as a requestor's cache may be.
      const seen = checker.observed.requests.get(id);
      const state = seen?.data['state'];
      if (state !== 'requested' && state !== 'pending') return state;
      if (clock.monotonic() >= impatientAt) return 'withdrawn';
      if (clock.monotonic() >= reprioritiseAt && state === 'requested') {
        reprioritiseAt = Infinity;
        await this.reprioritise(id);
      }
    }
  }

  private async reprioritise(id: string): Promise<void> {
    const lock = await this.locks.acquire(`/nodepool/requests-lock/${id}`);
    try {
      const { data, stat } = await this.zooKeeper.get(`${REQUESTS}/${id}`);
      const request = decode(data);
      if (request['state'] !== 'requested') return;
      const relative_priority = Math.floor(this.environment.random.next() * 5);
      await this.zooKeeper.set(`${REQUESTS}/${id}`, encode({ ...request, relative_priority }), {
        version: stat.version,
      });
    } finally {
      await lock.release();
    }
  }

  private async take(id: string): Promise<Taken> {
    const { data } = await this.zooKeeper.get(`${REQUESTS}/${id}`);
    const ids = nodesOf(decode(data));
    const locks = await Promise.all(ids.map((node) => this.locks.acquire(`/nodepool/nodes/${node}/lock`)));
    await this.withdraw(id);
    await Promise.all(ids.map((node) => this.change(node, { state: 'in-use', x_future: { kept: node } })));
    return { ids, locks };
  }

  private async giveBack({ ids, locks }: Taken): Promise<void> {
    const hold = this.chance('hold');
    const change = hold
      ? { state: 'hold', hold_expiration: '200', hold_job: 'job', comment: 'held' }
      : { state: 'used' };
    await Promise.all(ids.map((node) => this.change(node, hold ? change : { ...change, ...this.resultOn(node) })));
    await Promise.all(locks.map((lock) => lock.release()));
    if (!hold) return;
    await sleep(this.environment.clock, between(this.environment.random, 1000, 20_000));
    // Ends a hold as an operator does.
    for (const node of this.outdated ? [] : ids) {
      const lock = await this.locks.acquire(`/nodepool/nodes/${node}/lock`);
      await this.change(node, { state: 'used' });
      await lock.release();
    }
  }

  private resultOn(node: string): JsonObject {
    const result = this.environment.jobResult(
      textOf(this.environment.checker.observed.nodes.get(node)?.data['image_id']),
    );
    return result === undefined ? {} : { job_result: result };
  }

  private async change(node: string, change: JsonObject): Promise<void> {
    if (this.outdated) return;
    const path = `/nodepool/nodes/${node}`;
    const { data } = await this.zooKeeper.get(path);
    const state_time = this.environment.clock.now() / 1000;
    await this.zooKeeper.set(path, encode({ ...decode(data), ...change, state_time }));
  }

  /** Deletes the request, which may be missing after a restore or an earlier deletion. */
  private async withdraw(id: string): Promise<void> {
    try {
      await this.zooKeeper.delete(`${REQUESTS}/${id}`);
    } catch (error) {
      if (!isZooKeeperError(error, 'no-node')) throw error;
    }
    this.request = undefined;
  }

  /** Cancels the request at the worst time: a launcher has just locked it and is about to write it. */
  private withdrawWhenLocked(id: string): void {
    const { server, checker } = this.environment;
    const unsubscribe = server.onCommit((changes) => {
      if (!changes.some(({ path }) => path.startsWith(`/nodepool/requests-lock/${id}/`))) return;
      unsubscribe();
      if (this.request === id)
        this.withdraw(id).catch((error: unknown) => checker.step(`request ${id} stays: ${String(error)}`));
    });
  }

  /** Ends the session with its locks and deletes the request, as a restarted requestor does. */
  private async die(): Promise<void> {
    await this.zooKeeper.close();
    this.zooKeeper = announcing(this.environment);
    for (;;) {
      const request = this.request ?? this.unansweredRequest();
      if (request === undefined) return;
      try {
        await this.withdraw(request);
      } catch {
        // Retries while the server is unreachable.
        await sleep(this.environment.clock, GIVE_UP_RETRY_MS);
      }
    }
  }

  /** Returns the request that it created without an answer from ZooKeeper. */
  private unansweredRequest(): string | undefined {
    if (this.askedAt !== undefined) return undefined;
    for (const { id, data } of this.environment.checker.observed.requests.values()) {
      const { requestor_data: known } = data;
      if (isJsonObject(known) && known['name'] === this.environment.name) return id;
    }
    return undefined;
  }

  private chance(what: keyof typeof CHANCES): boolean {
    return this.environment.random.next() < CHANCES[what];
  }
}

/** Deletes requests whose requestor does not know them, as a requestor does when it finds them. */
export async function withdrawForgotten(
  world: Pick<RequestorEnvironment, 'server' | 'clock' | 'checker'>,
  id: string,
): Promise<void> {
  const zooKeeper = announcing(world);
  for (let done = false; !done;) {
    try {
      await zooKeeper.delete(`${REQUESTS}/${id}`);
      done = true;
    } catch (error) {
      done = isZooKeeperError(error, 'no-node');
      if (!done) await sleep(world.clock, GIVE_UP_RETRY_MS);
    }
  }
  await zooKeeper.close();
}

interface Taken {
  readonly ids: readonly string[];
  readonly locks: readonly HeldLock[];
}

function encode(value: JsonObject): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value));
}

function decode(data: Uint8Array): JsonObject {
  return JSON.parse(new TextDecoder().decode(data)) as JsonObject;
}
