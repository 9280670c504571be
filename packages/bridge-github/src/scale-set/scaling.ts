/** Decides how many runners a scale set needs, and which of them it does not need. */

import type { RunnerState } from '../runners/runner.js';

/** The part of a runner that matters here. */
export interface ScaledRunner {
  readonly name: string;
  readonly state: RunnerState;
  /** True if the runner serves a job or can serve one, or if GitHub may still count a job that it had. */
  readonly counts: boolean;
  /** `Clock.monotonic` milliseconds. */
  readonly createdAt: number;
  readonly onlineAt: number | undefined;
}

export interface Scale {
  /** Jobs that the scale set has to serve, running ones included. */
  readonly assigned: number;
  readonly min: number;
  readonly max: number;
  readonly runners: readonly ScaledRunner[];
  readonly idleTimeoutMs: number;
  /** `Clock.monotonic` milliseconds. */
  readonly now: number;
}

export interface ScalePlan {
  /** Number of runners to add. */
  readonly create: number;
  /** Runners that wait for a node and are not needed. */
  readonly cancel: readonly string[];
  /** Runners that are online without a job and not needed for a while. GitHub knows whether one has a job. */
  readonly remove: readonly string[];
  /** Time until a runner may be removed, in milliseconds; undefined if there is none. */
  readonly againMs: number | undefined;
}

export function planScale({ assigned, min, max, runners, idleTimeoutMs, now }: Scale): ScalePlan {
  const wanted = Math.min(max, min + assigned);
  const active = runners.filter(({ counts }) => counts);
  if (active.length <= wanted) return { create: wanted - active.length, cancel: [], remove: [], againMs: undefined };
  const surplus = active.length - wanted;
  const newestFirst = active.filter(({ state }) => state === 'requested').sort((a, b) => b.createdAt - a.createdAt);
  const cancel = newestFirst.slice(0, surplus).map(({ name }) => name);
  const idle = active
    .filter(({ state }) => state === 'online')
    .sort((a, b) => (a.onlineAt ?? now) - (b.onlineAt ?? now))
    .slice(0, surplus - cancel.length);
  const leftMs = (runner: ScaledRunner): number => idleTimeoutMs - (now - (runner.onlineAt ?? now));
  const remove = idle.filter((runner) => leftMs(runner) <= 0).map(({ name }) => name);
  const waits = idle.map(leftMs).filter((ms) => ms > 0);
  return { create: 0, cancel, remove, againMs: waits.length === 0 ? undefined : Math.min(...waits) };
}
