/** Changes of the states of providers over the last day. */

import type { Clock, Timer } from '@nodepool/core';
import type { ProviderSummary } from '../facts/activity.js';
import { isObject } from './history-bucket.js';

export interface ProviderEvent {
  /** Milliseconds since the epoch. */
  readonly time: number;
  readonly provider: string;
  readonly state: string;
  readonly reason: string | null;
}

const INTERVAL_MS = 10_000;
const MAX_EVENTS = 500;

export class ProviderEvents {
  private readonly events: ProviderEvent[] = [];
  private readonly states = new Map<string, string>();
  private timer: Timer | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly summaries: () => readonly ProviderSummary[],
    private readonly onEvent: (event: ProviderEvent) => void,
  ) {}

  start(): void {
    this.timer = this.clock.schedule(
      INTERVAL_MS,
      () => {
        this.sample();
        this.start();
      },
      { background: true },
    );
  }

  stop(): void {
    this.timer?.cancel();
  }

  /** Returns the changes, oldest first. */
  list(): readonly ProviderEvent[] {
    return this.events;
  }

  /** Adds a change that an earlier process recorded. */
  restore(json: unknown): void {
    if (!isObject(json)) return;
    const { time, provider, state, reason } = json;
    if (typeof time !== 'number' || typeof provider !== 'string' || typeof state !== 'string') return;
    this.keep({ time, provider, state, reason: typeof reason === 'string' ? reason : null });
    this.states.set(provider, state);
  }

  private sample(): void {
    for (const { provider, state, reason } of this.summaries()) {
      const before = this.states.get(provider);
      this.states.set(provider, state);
      // Every start of a launcher passes through `starting`, which is not an event.
      if (before === state || state === 'starting' || (before === undefined && state === 'serving')) continue;
      if (before === 'starting' && state === 'serving') continue;
      const event = { time: this.clock.now(), provider, state, reason: reason ?? null };
      this.keep(event);
      this.onEvent(event);
    }
  }

  private keep(event: ProviderEvent): void {
    this.events.push(event);
    if (this.events.length > MAX_EVENTS) this.events.shift();
  }
}
