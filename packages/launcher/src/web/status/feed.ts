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
/** A viewer that has not taken what was sent for this long, in milliseconds, is disconnected. */
const STALL_MS = 15_000;
/** A viewer connected for at least this long, in milliseconds, gives its place to a new one when all are taken. */
const PLACE_MS = 10_000;

interface Viewer {
  readonly since: number;
  /** The sections that were sent last. */
  sections: SectionTexts;
  at: number;
  /** Since when the connection has not taken what was sent; at most one message waits. */
  stalledSince: number | undefined;
}

export class StatusFeed {
  /** In the order in which they connected. */
  private readonly viewers = new Map<ServerResponse, Viewer>();
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

  /**
   * Returns true if there is a place for another viewer. If all are taken, the longest connected viewer is disconnected:
   * one that reads connects again, and one that never reads cannot be told apart, since the network takes megabytes for it.
   */
  makeRoom(): boolean {
    if (this.viewers.size < this.maxViewers) return true;
    const [oldest] = this.viewers;
    if (oldest === undefined || this.clock.monotonic() - oldest[1].since < PLACE_MS) return false;
    this.drop(oldest[0]);
    return true;
  }

  /** Streams to this response until it is closed. The head has been written. */
  add(response: ServerResponse): void {
    response.on('close', () => this.remove(response));
    // A broken connection closes the response, too.
    response.on('error', () => this.remove(response));
    const since = this.clock.monotonic();
    this.viewers.set(response, { since, sections: new Map(), at: -Infinity, stalledSince: undefined });
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

  private drop(response: ServerResponse): void {
    this.remove(response);
    response.destroy();
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
      for (const [response, viewer] of this.viewers) {
        if (response.writableNeedDrain) {
          viewer.stalledSince ??= now;
          if (now - viewer.stalledSince >= STALL_MS) this.drop(response);
          continue;
        }
        viewer.stalledSince = undefined;
        const changed = changedSections(viewer.sections, sections);
        if (changed.size === 0 && now - viewer.at < HEARTBEAT_MS) continue;
        Object.assign(viewer, { sections, at: now });
        response.write(`data: ${messageOf(changed, this.clock.now())}\n\n`);
      }
    } catch (error) {
      this.onError(error);
    }
  }
}
