/**
 * Streams the documents of the status page to its viewers: first all members of the view's document, then the changed
 * ones. A document is created at most once a second for all viewers of the view together, and only while there are
 * viewers.
 */

import type { ServerResponse } from 'node:http';
import type { Clock, Timer } from '@nodepool/core';

/** The members of a document as JSON, by name. */
export type SectionTexts = ReadonlyMap<string, string>;

/** Creates the document of a view; undefined if there is no such view. */
export type DocumentMaker = (view: string) => object | undefined;

const INTERVAL_MS = 1000;
/** Longest time between two messages, in milliseconds; messages show the page that the launcher is alive. */
const HEARTBEAT_MS = 5000;
const RETRY_MS = 2000;
/** A viewer whose connection has been stalled for this long, in milliseconds, is disconnected. */
const STALL_MS = 15_000;
/** Minimum time of a connection, in milliseconds, before a new viewer may replace it when all places are taken. */
const PLACE_MS = 10_000;
/** Number of documents that are cached for polls. */
const MAX_DOCUMENTS = 200;

interface Viewer {
  readonly view: string;
  readonly since: number;
  /** The last members sent to the viewer. */
  sections: SectionTexts;
  at: number;
  /** Time at which the connection stalled; at most one message waits. */
  stalledSince: number | undefined;
}

export class StatusFeed {
  /** Viewers in the order of their connection. */
  private readonly viewers = new Map<ServerResponse, Viewer>();
  private readonly kept = new Map<string, { readonly sections: SectionTexts; readonly at: number }>();
  private timer: Timer | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly make: DocumentMaker,
    private readonly maxViewers: number,
    private readonly onError: (error: unknown) => void,
  ) {}

  /** Returns a view's document as one message that is at most a second old; undefined if there is no such view. */
  message(view: string): string | undefined {
    const sections = this.sections(view);
    if (this.viewers.size === 0) this.forgetOld();
    return sections === undefined ? undefined : messageOf(sections, this.clock.now());
  }

  /**
   * Returns true if there is a place for another viewer. If all places are taken, the viewer that has been connected
   * longest is disconnected: the browser of an active viewer reconnects, and an inactive one cannot be detected, since
   * the network buffers megabytes.
   */
  ensureCapacity(): boolean {
    if (this.viewers.size < this.maxViewers) return true;
    const [oldest] = this.viewers;
    if (oldest === undefined || this.clock.monotonic() - oldest[1].since < PLACE_MS) return false;
    this.drop(oldest[0]);
    return true;
  }

  /** Streams a view to the response until it is closed. The response head must have been written. */
  add(response: ServerResponse, view: string): void {
    response.on('close', () => this.remove(response));
    // A broken connection also closes the response.
    response.on('error', () => this.remove(response));
    const since = this.clock.monotonic();
    const viewer: Viewer = { view, since, sections: new Map(), at: -Infinity, stalledSince: undefined };
    this.viewers.set(response, viewer);
    response.write(`retry: ${RETRY_MS}\n\n`);
    this.tell(response, viewer);
    this.schedule();
  }

  /** Ends all streams. */
  close(): void {
    this.timer?.cancel();
    this.timer = undefined;
    this.kept.clear();
    for (const response of this.viewers.keys()) response.end();
    this.viewers.clear();
  }

  private sections(view: string): SectionTexts | undefined {
    const now = this.clock.monotonic();
    const kept = this.kept.get(view);
    if (kept !== undefined && now - kept.at < INTERVAL_MS) return kept.sections;
    const document = this.make(view);
    if (document === undefined) return undefined;
    const sections = new Map(
      Object.entries(document).map(([name, value]: [string, unknown]) => [name, JSON.stringify(value)]),
    );
    this.kept.delete(view);
    this.kept.set(view, { sections, at: now });
    for (const oldest of this.kept.keys()) {
      if (this.kept.size <= MAX_DOCUMENTS) break;
      this.kept.delete(oldest);
    }
    return sections;
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
    this.kept.clear();
  }

  private schedule(): void {
    this.timer ??= this.clock.schedule(
      INTERVAL_MS,
      () => {
        this.timer = undefined;
        if (this.viewers.size === 0) return;
        for (const [response, viewer] of this.viewers) this.tell(response, viewer);
        this.forgetOld();
        this.schedule();
      },
      { background: true },
    );
  }

  /** Drops documents that no viewer has requested for a second, because they are large. */
  private forgetOld(): void {
    const now = this.clock.monotonic();
    for (const [view, { at }] of this.kept) if (now - at >= INTERVAL_MS) this.kept.delete(view);
  }

  private tell(response: ServerResponse, viewer: Viewer): void {
    try {
      const now = this.clock.monotonic();
      if (response.writableNeedDrain) {
        viewer.stalledSince ??= now;
        if (now - viewer.stalledSince >= STALL_MS) this.drop(response);
        return;
      }
      viewer.stalledSince = undefined;
      const sections = this.sections(viewer.view) ?? new Map<string, string>();
      const changed = changedSections(viewer.sections, sections);
      if (changed.size === 0 && now - viewer.at < HEARTBEAT_MS) return;
      Object.assign(viewer, { sections, at: now });
      response.write(`data: ${messageOf(changed, this.clock.now())}\n\n`);
    } catch (error) {
      this.onError(error);
    }
  }
}

/** Returns the members of `after` that differ from `before`. */
function changedSections(before: SectionTexts, after: SectionTexts): SectionTexts {
  return new Map([...after].filter(([name, text]) => before.get(name) !== text));
}

/** Returns a `StatusMessage` as JSON; `now` is in milliseconds since the epoch. */
function messageOf(sections: SectionTexts, now: number): string {
  const parts = [...sections].map(([name, text]) => `${JSON.stringify(name)}:${text}`);
  return `{"time":${now / 1000},"sections":{${parts.join(',')}}}`;
}
