/**
 * The lines of the exported journal, which `nodepool plan` replays. docs/planning.md describes them. Times are unix
 * seconds, durations are seconds.
 */

import type { Resources } from '@nodepool/core';
import type { ProviderSummary } from '../facts/activity.js';
import type { Attempt, ClosedSegment, NodePhase } from '../timeline/life.js';
import type { NodeLife } from '../timeline/node-life.js';
import type { RequestLife } from '../timeline/request-life.js';

export const JOURNAL_FORMAT = 1;

/** The first line. The journal has every life that ended between `since` and `until`. */
export function headerLine(since: number, until: number): object {
  return { kind: 'journal', version: JOURNAL_FORMAT, since: seconds(since), until: seconds(until) };
}

export function requestLine({ facts, created, end, ended }: RequestLife): object {
  const { id, labels, requestor, tenant, priority } = facts;
  return {
    ...{ kind: 'request', id, created: seconds(created), labels, requestor, tenant },
    ...(priority === 0 ? {} : { relative_priority: priority }),
    // The launcher that held the request knows its result.
    ...(ended === undefined || end === undefined || ended.result === 'unseen'
      ? {}
      : { result: ended.result, waited: seconds(end - created), nodes: ended.nodes }),
  };
}

/** `now` ends the current phase of a life that has not ended. */
export function nodeLine(life: NodeLife, now: number): object {
  const { id, labels, provider, pool, request, resources } = life.facts;
  const durations = life.durations(now);
  const used = (durations.get('in-use') ?? 0) + (durations.get('held') ?? 0);
  return {
    ...{ kind: 'node', id, labels, provider, pool, request, created: seconds(life.created) },
    ...(resources === null ? {} : { resources }),
    ...(life.end === undefined ? { open: true } : {}),
    attempts: attemptsOf(life),
    ...(used > 0 ? { used: seconds(used) } : {}),
    // The deletion of a node that was never ready belongs to its failed launch.
    ...(life.end !== undefined && durations.has('deleting')
      ? { deleting: seconds(durations.get('deleting') ?? 0) }
      : {}),
  };
}

/** The limits that the cloud of a provider reports now. */
export function providerLine({ provider, limit }: ProviderSummary): object {
  return { kind: 'provider', provider, limit: withoutUnlimited(limit) };
}

/** JSON has no infinity; a resource without a limit is omitted. */
function withoutUnlimited(limit: Resources): Resources {
  return Object.fromEntries(Object.entries(limit).filter(([, amount]) => Number.isFinite(amount)));
}

const LAUNCH_PHASES: ReadonlySet<NodePhase> = new Set(['creating', 'booting', 'login']);

/** Durations by phase. */
type Stages = Partial<Record<NodePhase, number>> & { at?: number; failed?: boolean };

function attemptsOf(life: NodeLife): readonly object[] {
  const launches = launchesOf(life.closed());
  const failures = life.attempts.filter(({ error }) => error !== undefined && error.code !== 'aborted');
  const success = life.attempts.find(({ error }) => error === undefined);
  const failed = launches.filter((stages) => stages.failed === true);
  // The oldest attempts and phases of a long life are dropped separately.
  const known = Math.min(failed.length, failures.length);
  const pairs: [Stages, Attempt][] = failures
    .slice(failures.length - known)
    .map((attempt, index) => [failed[failed.length - known + index] ?? {}, attempt]);
  const last = launches.at(-1);
  if (success !== undefined && last !== undefined && last.failed !== true) pairs.push([last, success]);
  return pairs.map(([{ at, creating = 0, booting = 0, login = 0 }, { pool, label, error }]) => ({
    ...{ at: seconds(at ?? life.created), pool, label, result: error?.code ?? 'ready' },
    ...{ creating: seconds(creating), booting: seconds(booting), login: seconds(login) },
  }));
}

/** Returns the launch attempts among the phases of a node, each with the durations of its stages. */
function launchesOf(segments: readonly ClosedSegment[]): readonly Stages[] {
  const launches: Stages[] = [];
  let current: Stages | undefined;
  for (const { phase, from, to, failed } of segments) {
    if (!LAUNCH_PHASES.has(phase)) {
      current = undefined;
      continue;
    }
    if (current === undefined) launches.push((current = { at: from }));
    current[phase] = (current[phase] ?? 0) + (to ?? from) - from;
    if (!failed) continue;
    current.failed = true;
    current = undefined;
  }
  return launches;
}

function seconds(ms: number): number {
  return Math.round(ms) / 1000;
}
