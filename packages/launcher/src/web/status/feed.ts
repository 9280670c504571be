/**
 * Streams the sections of the status page to its viewers: first all sections, then the changed ones. The sections are
 * created once a second for all viewers together, and only while there are viewers.
 */

import type { ServerResponse } from 'node:http';
import type { Clock, Timer } from '@nodepool/core';
import { changedSections, messageOf, type SectionTexts } from './sections.js';

const INTERVAL_MS = 1000;
/** Longest time between two messages, in milliseconds; by them the page detects that the launcher is alive. */
const HEARTBEAT_MS = 5000;
const RETRY_MS = 2000;
/** A viewer whose connection has been stalled for this long, in milliseconds, is disconnected. */
const STALL_MS = 15_000;
/** Minimum time of a connection, in milliseconds, before a new viewer may replace it when all places are taken. */
const PLACE_MS = 10_000;

interface Viewer {
  readonly since: number;
  /** The last sections sent to the viewer. */
  sections: SectionTexts;
  at: number;
  /** Time since when the connection has been stalled; at most one message waits. */
  stalledSince: number | undefined;
}

export class StatusFeed {
  /** Viewers in the order of their connection. */
  private readonly viewers = new Map<ServerResponse, Viewer>();
  private kept: { readonly sections: SectionTexts; readonly at: number } | undefined;
  private timer: Timer | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly make: () => SectionTexts,
    private readonly maxViewers: number,
    private readonly onError: (error: unknown) => void,
  ) {}

  /** Returns all sections as one message; they are at most a second old. */
  message(): string {
    return messageOf(this.sections(), this.clock.now());
  }

  /**
   * Returns true if there is a place for another viewer. If all places are taken, the viewer that has been connected
   * longest is disconnected: the browser of an active viewer reconnects, and an inactive one cannot be detected, since
   * the network buffers megabytes.
   */
  makeRoom(): boolean {
    if (this.viewers.size < this.maxViewers) return true;
    const [oldest] = this.viewers;
    if (oldest === undefined || this.clock.monotonic() - oldest[1].since < PLACE_MS) return false;
    this.drop(oldest[0]);
    return true;
  }

  /** Streams to the response until it is closed. The response head must have been written. */
  add(response: ServerResponse): void {
    response.on('close', () => this.remove(response));
    // A broken connection also closes the response.
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
