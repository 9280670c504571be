/**
 * Decides when this launcher acts on work that several launchers could do. The first one in `LauncherOrder` acts at
 * once. Each further one waits for a short time, and longer only while it sees that a launcher before it is at work.
 */

import type { Clock, NodeRequest } from '@nodepool/core';
import type { NodeEntry, Store } from '@nodepool/store';
import { byWeight, LauncherOrder, topicOf, type DecidingPool } from './launcher-order.js';

/**
 * Time that each place in the order waits for those before it, milliseconds: much longer than a round trip to the
 * ensemble and than a pause of a launcher for the collection of garbage.
 */
const STEP_MS = 500;

/**
 * Time after which launchers help one that is at work but has not reached some work, milliseconds. For each piece of
 * work, one helper begins, and the others follow after the same time again.
 */
const HELP_MS = 3000;

/** Time for which a launcher that did not act comes last, milliseconds. */
const DISTRUST_MS = 10_000;

/** Time after the end of a wait for which it counts, milliseconds. Later, the same work waits anew. */
const FORGOTTEN_MS = 1000;

/** Limit of the places that wait for those before them, so that no work waits long. */
const MAX_PLACES = 5;

/** Limit of the pairs of launchers and topics that are remembered, because requestors may name any labels. */
const MAX_REMEMBERED = 10_000;

/** A wait for launchers before this one. */
interface Wait {
  readonly topic: string;
  /** Times in `Clock.monotonic` milliseconds. */
  since: number;
  until: number;
  /** Key of the launcher that should act. */
  first: string;
}

export class Precedence {
  readonly order: LauncherOrder;
  /** By id of a request or node. */
  private readonly waits = new Map<string, Wait>();
  /** Times at which launchers last took work of a topic, by `keyOf`. */
  private readonly active = new Map<string, number>();
  /** Times until which launchers come last, by `keyOf`. */
  private readonly distrusted = new Map<string, number>();

  constructor(
    store: Pick<Store, 'components' | 'zooKeeper'>,
    private readonly clock: Clock,
  ) {
    this.order = new LauncherOrder(store);
  }

  /** Returns the time (ms) for which a request is left to launchers before this one; 0 if this launcher may act now. */
  waitForRequest(request: NodeRequest, pool: DecidingPool, isResumed: boolean): number {
    const order = isResumed ? this.order.forResumption(request, pool) : this.order.forRequest(request, pool);
    return this.waitFor(request.id, requestTopic(request), order);
  }

  /** Returns the time (ms) for which the deletion of a node is left to launchers before this one. */
  waitForDeletion({ id, node }: NodeEntry): number {
    const order = this.order.forDeletion(id, node.provider ?? '', node.launcher);
    return this.waitFor(id, deletionTopic(node.provider), order);
  }

  /** Records that the work was taken: by another launcher if this one waits for it. */
  taken(id: string): void {
    const wait = this.waits.get(id);
    if (wait === undefined) return;
    this.waits.delete(id);
    const now = this.clock.monotonic();
    // After the wait, this launcher has taken the work itself.
    if (wait.until <= now) return;
    const key = keyOf(wait.first, wait.topic);
    if (this.active.size >= MAX_REMEMBERED) this.active.clear();
    this.active.set(key, now);
    this.distrusted.delete(key);
  }

  /** Records that another launcher has locked a request: those that this one distrusts are at work. */
  requestLocked(request: NodeRequest): void {
    this.trust(requestTopic(request));
  }

  /** Records that another launcher has locked a node that this one was about to delete. */
  deletionLost({ node }: NodeEntry): void {
    this.trust(deletionTopic(node.provider));
  }

  /** Ends a wait without a result. */
  forget(id: string): void {
    this.waits.delete(id);
  }

  stop(): void {
    this.order.stop();
  }

  private waitFor(id: string, topic: string, registered: readonly string[]): number {
    const { own } = this.order;
    const now = this.clock.monotonic();
    const keys = this.trustedFirst(registered, topic, now);
    const place = keys.indexOf(own);
    const [first] = keys;
    if (place <= 0 || first === undefined) return 0;
    const wait = this.waitOf(id, topic, now);
    wait.first = first;
    const ahead = keys.slice(0, place);
    let lastActive = wait.since;
    for (const key of ahead) lastActive = Math.max(lastActive, this.active.get(keyOf(key, topic)) ?? 0);
    const idleAt = lastActive + Math.min(place, MAX_PLACES) * STEP_MS;
    if (now >= idleAt) {
      if (this.distrusted.size >= MAX_REMEMBERED) this.distrusted.clear();
      for (const key of ahead) this.distrusted.set(keyOf(key, topic), now + DISTRUST_MS);
    }
    const isHelper = byWeight(id, keys.slice(1))[0] === own;
    const helpAt = wait.since + (isHelper ? HELP_MS : 2 * HELP_MS);
    wait.until = Math.max(now, Math.min(idleAt, helpAt));
    return wait.until - now;
  }

  private waitOf(id: string, topic: string, now: number): Wait {
    let wait = this.waits.get(id);
    if (wait === undefined || now - wait.until > FORGOTTEN_MS) {
      wait = { topic, since: now, until: now, first: '' };
      this.waits.set(id, wait);
    }
    return wait;
  }

  private trust(topic: string): void {
    if (this.distrusted.size === 0) return;
    for (const key of this.distrusted.keys()) {
      if (!key.endsWith(`\n${topic}`)) continue;
      this.distrusted.delete(key);
      this.active.set(key, this.clock.monotonic());
    }
  }

  private trustedFirst(keys: readonly string[], topic: string, now: number): readonly string[] {
    if (this.distrusted.size === 0) return keys;
    const isDistrusted = (key: string): boolean => (this.distrusted.get(keyOf(key, topic)) ?? 0) > now;
    return [...keys.filter((key) => !isDistrusted(key)), ...keys.filter(isDistrusted)];
  }
}

function requestTopic(request: NodeRequest): string {
  return `request\n${topicOf(request)}`;
}

function deletionTopic(provider: string | null): string {
  return `deletion\n${provider ?? ''}`;
}

function keyOf(launcher: string, topic: string): string {
  return `${launcher}\n${topic}`;
}
