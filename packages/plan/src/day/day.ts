/** A day of requests, with the observed launches, deletions and limits. */

import type { Resources } from '@nodepool/core';
import type { AttemptLine, DayLine, NodeLine, RequestLine } from './lines.js';

export interface Day {
  /** The part of time that is measured, milliseconds since the epoch. */
  readonly fromMs: number;
  readonly toMs: number;
  /** In the order of their creation. */
  readonly requests: readonly DayRequest[];
  readonly launches: readonly ObservedLaunch[];
  /** Durations of deletions by provider, milliseconds. */
  readonly deletions: ReadonlyMap<string, readonly number[]>;
  /** Limits that clouds reported, by provider. */
  readonly limits: ReadonlyMap<string, Resources>;
  /** Resources of a node, by `placeKey`. */
  readonly needs: ReadonlyMap<string, Resources>;
  /** Facts about the data, as sentences. */
  readonly notes: readonly string[];
}

export interface DayRequest {
  readonly createdMs: number;
  readonly labels: readonly string[];
  readonly tenant: string | null;
  readonly requestor: string | null;
  readonly priority: number;
  readonly relativePriority: number;
  /** Use of each node, in the order of the labels. */
  readonly held: readonly Held[];
  /** Time after which the requestor cancelled the request; undefined if it waited for the result. */
  readonly patienceMs: number | undefined;
  /** The recorded end; undefined if it is not known. */
  readonly recorded: { readonly result: 'fulfilled' | 'failed' | 'cancelled'; readonly waitedMs: number } | undefined;
  /** True if it was created before the measured time. It only provides the load at the start. */
  readonly isInitial: boolean;
}

/** The use of a node (ms): `ms` if it is known; otherwise it is drawn, and lasts `atLeastMs`. */
export type Held = { readonly ms: number } | { readonly ms: undefined; readonly atLeastMs: number };

export interface ObservedLaunch extends AttemptLine {
  readonly provider: string;
}

/** Requests of launchers, e.g. for `min-ready`; the replay creates its own. */
const OWN_REQUESTOR = 'NodePool:';

/** Returns the key of a label in a pool. */
export function placeKey(provider: string, pool: string, label: string): string {
  return JSON.stringify([provider, pool, label]);
}

/** Combines the lines of one or several launchers. `sinceMs` limits the day to its last part. */
export function assembleDay(lines: readonly DayLine[], sinceMs: number | undefined): Day {
  const found = new DayLines(lines);
  const { requests, nodes } = found;
  const created = requests.map(({ createdMs }) => createdMs);
  const first = created.reduce((least, each) => Math.min(least, each), Infinity);
  const last = created.reduce((most, each) => Math.max(most, each), 0);
  const toMs = found.untilMs ?? last + 1;
  const fromMs = Math.max(found.sinceMs ?? first, sinceMs === undefined ? -Infinity : toMs - sinceMs);
  const replayed = requests
    .flatMap((line) => dayRequest(line, nodes, fromMs) ?? [])
    .sort((a, b) => a.createdMs - b.createdMs);
  const launches = [...nodes.values()].flatMap(({ attempts }) =>
    attempts.map((attempt) => ({ ...attempt, provider: attempt.pool.slice(0, attempt.pool.indexOf('/')) })),
  );
  return {
    ...{ fromMs, toMs, requests: replayed },
    // A quota is a limit, which the replay has of its own.
    launches: launches.filter(({ result }) => result !== 'quota' && result !== 'aborted'),
    deletions: deletionsOf(nodes.values()),
    limits: found.limits,
    needs: needsOf(nodes.values()),
    notes: notesOf(replayed, launches),
  };
}

/** The lines by kind. A request or a node that several launchers have recorded counts once. */
class DayLines {
  readonly nodes = new Map<string, NodeLine>();
  readonly limits = new Map<string, Resources>();
  sinceMs: number | undefined;
  untilMs: number | undefined;
  private readonly byId = new Map<string, RequestLine>();
  private readonly anonymous: RequestLine[] = [];

  constructor(lines: readonly DayLine[]) {
    for (const line of lines) this.add(line);
  }

  get requests(): readonly RequestLine[] {
    const all = [...this.byId.values(), ...this.anonymous];
    return all.filter(({ requestor }) => requestor?.startsWith(OWN_REQUESTOR) !== true);
  }

  private add(line: DayLine): void {
    switch (line.kind) {
      case 'journal':
        this.sinceMs = Math.min(this.sinceMs ?? Infinity, line.sinceMs);
        this.untilMs = Math.max(this.untilMs ?? 0, line.untilMs);
        return;
      case 'provider':
        if (Object.keys(line.limit).length > 0) this.limits.set(line.provider, line.limit);
        return;
      case 'node': {
        // Only the launcher that has launched it knows the attempts.
        const known = this.nodes.get(line.id);
        if (known === undefined || rank(line) > rank(known)) this.nodes.set(line.id, line);
        return;
      }
      case 'request':
        if (line.id === undefined) this.anonymous.push(line);
        else {
          // Only the launcher that has served it surely knows its end.
          const known = this.byId.get(line.id);
          if (known === undefined || rankOfEnd(line) > rankOfEnd(known)) this.byId.set(line.id, line);
        }
    }
  }
}

function rank({ attempts, open }: NodeLine): number {
  return attempts.length * 2 + (open ? 0 : 1);
}

function rankOfEnd({ result }: RequestLine): number {
  return ['cancelled', 'failed', 'fulfilled'].indexOf(result ?? '');
}

/** Returns undefined for a request that ended before the measured time. */
function dayRequest(line: RequestLine, nodes: ReadonlyMap<string, NodeLine>, fromMs: number): DayRequest | undefined {
  const { createdMs, labels, tenant, requestor, priority, relativePriority, result, waitedMs } = line;
  const common = { labels, tenant, requestor, priority, relativePriority };
  const recorded = result === undefined || waitedMs === undefined ? undefined : { result, waitedMs };
  const held = labels.map((_label, index) => heldOf(line, index, nodes));
  const patienceMs = recorded?.result === 'cancelled' ? recorded.waitedMs : undefined;
  if (createdMs >= fromMs) return { ...common, createdMs, held, patienceMs, recorded, isInitial: false };
  if (recorded !== undefined && recorded.result !== 'fulfilled') return undefined;
  const usedFrom = createdMs + (recorded?.waitedMs ?? 0);
  const rest = held.map((each) => restOf(each, fromMs - usedFrom));
  const isOver = recorded !== undefined && rest.every((each) => each.ms === 0);
  return isOver
    ? undefined
    : { ...common, createdMs: fromMs, held: rest, patienceMs: undefined, recorded: undefined, isInitial: true };
}

function heldOf({ heldMs, nodes: ids }: RequestLine, index: number, nodes: ReadonlyMap<string, NodeLine>): Held {
  const ms = heldMs?.[index];
  if (ms !== undefined) return { ms };
  const node = nodes.get(ids[index] ?? '');
  if (node?.usedMs === undefined) return { ms: undefined, atLeastMs: 0 };
  return node.open ? { ms: undefined, atLeastMs: node.usedMs } : { ms: node.usedMs };
}

/** Returns the use that is left after `passedMs`. */
function restOf(held: Held, passedMs: number): Held {
  if (held.ms !== undefined) return { ms: Math.max(0, held.ms - Math.max(0, passedMs)) };
  return { ms: undefined, atLeastMs: Math.max(0, held.atLeastMs - Math.max(0, passedMs)) };
}

function deletionsOf(nodes: Iterable<NodeLine>): ReadonlyMap<string, readonly number[]> {
  const byProvider = new Map<string, number[]>();
  for (const { provider, deletingMs } of nodes) {
    if (provider === null || deletingMs === undefined) continue;
    const durations = byProvider.get(provider);
    if (durations === undefined) byProvider.set(provider, [deletingMs]);
    else durations.push(deletingMs);
  }
  return byProvider;
}

function needsOf(nodes: Iterable<NodeLine>): ReadonlyMap<string, Resources> {
  const needs = new Map<string, Resources>();
  for (const { provider, pool, labels, resources } of nodes) {
    if (provider === null || pool === null || resources === undefined) continue;
    for (const label of labels) needs.set(placeKey(provider, pool, label), resources);
  }
  return needs;
}

function notesOf(requests: readonly DayRequest[], launches: readonly ObservedLaunch[]): readonly string[] {
  const measured = requests.filter(({ isInitial }) => !isInitial);
  const unknown = measured.filter(({ held }) => held.some(({ ms }) => ms === undefined)).length;
  const atQuota = launches.filter(({ result }) => result === 'quota').length;
  const initial = requests.length - measured.length;
  return [
    ...(initial === 0 ? [] : [`${initial} requests of the time before were still in use at the start.`]),
    ...(unknown === 0
      ? []
      : [`The use of nodes is not known for ${unknown} of ${measured.length} requests; it is drawn from the others.`]),
    ...(atQuota === 0
      ? []
      : [`${atQuota} launches were refused because of a quota. The replay has the limits that the clouds reported.`]),
  ];
}
