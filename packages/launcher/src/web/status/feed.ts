/**
 * Sends the status page's sections to everybody who looks at it: all of them first, then those that have changed. They
 * are made once a second for everybody together, and not at all while nobody looks.
 */

import type { ServerResponse } from 'node:http';
import type { Clock, Timer } from '@nodepool/core';
import { changedSections, messageOf, type SectionTexts } from './sections.js';

const INTERVAL_MS = 1000;
/** Something is said at least so often: the page knows by it that the launcher is there. */
const HEARTBEAT_MS = 5000;
const RETRY_MS = 2000;

export class StatusFeed {
  /** Who looks, and what they were told. */
  private readonly viewers = new Map<ServerResponse, { sections: SectionTexts; at: number }>();
  private kept: { readonly sections: SectionTexts; readonly at: number } | undefined;
  private timer: Timer | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly make: () => SectionTexts,
    private readonly maxViewers: number,
    private readonly onError: (error: unknown) => void,
  ) {}

  /** All sections as a message, at most a second old. */
  message(): string {
    return messageOf(this.sections(), this.clock.now());
  }

  get isFull(): boolean {
    return this.viewers.size >= this.maxViewers;
  }

  /** Streams to this response until it is closed. The head has been written. */
  add(response: ServerResponse): void {
    response.on('close', () => this.remove(response));
    // What a connection that breaks has to say is that it breaks.
    response.on('error', () => this.remove(response));
    this.viewers.set(response, { sections: new Map(), at: -Infinity });
    response.write(`retry: ${RETRY_MS}\n\n`);
    this.tell();
    this.schedule();
  }

  /** Ends all streams. */
  close(): void {
    this.timer?.cancel();
    this.timer = undefined;
    this.kept = undefined;
    for (const response of this.viewers.keys()) response.end();
    this.viewers.clear();
  }

  private sections(): SectionTexts {
    const now = this.clock.monotonic();
    if (this.kept === undefined || now - this.kept.at >= INTERVAL_MS) this.kept = { sections: this.make(), at: now };
    return this.kept.sections;
  }

  private remove(response: ServerResponse): void {
    this.viewers.delete(response);
    if (this.viewers.size > 0) return;
    this.timer?.cancel();
    this.timer = undefined;
    this.kept = undefined;
  }

  private schedule(): void {
    this.timer ??= this.clock.schedule(
      INTERVAL_MS,
      () => {
        this.timer = undefined;
        if (this.viewers.size === 0) return;
        this.tell();
        this.schedule();
      },
      { background: true },
    );
  }

  private tell(): void {
    try {
      const sections = this.sections();
      const now = this.clock.monotonic();
      for (const [response, told] of this.viewers) {
        // Who cannot take what was sent gets no more; it is told the difference when it can.
        if (response.writableNeedDrain) continue;
        const changed = changedSections(told.sections, sections);
        if (changed.size === 0 && now - told.at < HEARTBEAT_MS) continue;
        this.viewers.set(response, { sections, at: now });
        response.write(`data: ${messageOf(changed, this.clock.now())}\n\n`);
      }
    } catch (error) {
      this.onError(error);
    }
  }
}
