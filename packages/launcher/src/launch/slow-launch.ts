/** Ends launch attempts that take much longer than usual for their label, once another offer or pool can serve them. */

import type { TimedLaunch } from '../capacity/launch-times.js';
import { SlowLaunchError } from '../capacity/launch-fault.js';
import type { LauncherContext } from '../context.js';

/** Age of the launch at the first check, and the shortest delay between checks, milliseconds. */
const FIRST_CHECK_MS = 120_000;
const CHECK_MS = 15_000;

export interface SlowLaunchWatch {
  readonly signal: AbortSignal;
  stop(): void;
}

/**
 * Watches a running launch. The signal aborts with a `SlowLaunchError` if the launch is slow and `canMove` returns true
 * because another offer or pool can serve it.
 */
export function watchSlowLaunch(
  { clock, capacity }: Pick<LauncherContext, 'clock' | 'capacity'>,
  launch: TimedLaunch,
  canMove: () => boolean,
): SlowLaunchWatch {
  const controller = new AbortController();
  const check = (): void => {
    const limitMs = launch.limitMs();
    const ageMs = clock.monotonic() - launch.startedAt;
    if (limitMs !== undefined && ageMs >= limitMs && canMove()) {
      const seconds = (ms: number): number => Math.round(ms / 1000);
      const message = `the launch has taken ${seconds(ageMs)} s, more than the limit of ${seconds(limitMs)} s`;
      controller.abort(new SlowLaunchError(`${message}, which follows from usual launches of the label`));
      return;
    }
    timer = clock.schedule(Math.max((limitMs ?? 0) - ageMs, CHECK_MS), check);
  };
  let timer = capacity.breakers ? clock.schedule(FIRST_CHECK_MS, check) : { cancel: () => undefined };
  return { signal: controller.signal, stop: () => timer.cancel() };
}
