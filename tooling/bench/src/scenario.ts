/** The parts that scenarios have in common. */

import {
  BenchmarkEnvironment,
  type EnvironmentOptions,
  type EventLoopDelay,
  type LauncherFacts,
} from './environment.js';
import type { Row } from './table.js';

/** Result of a scenario. */
export interface Outcome {
  readonly rows: readonly Row[];
  /** Launchers whose memory contributes to the summary row. */
  readonly launchers: readonly LauncherFacts[];
  readonly eventLoops: readonly MeasuredLoop[];
}

/** The delay of a launcher's event loop during a part of a measurement. */
export interface MeasuredLoop extends EventLoopDelay {
  readonly what: string;
}

/** A measurement that returns the rows of its letters. */
export interface Scenario {
  readonly letters: string;
  readonly what: string;
  run(options: EnvironmentOptions): Promise<Outcome>;
}

/** Names the phases of a launcher: `phases` are those after its start. */
export function loopsOf({ eventLoopDelays }: LauncherFacts, ...phases: readonly string[]): MeasuredLoop[] {
  return eventLoopDelays.flatMap((delay, index) => {
    const phase = phases[Math.min(index, phases.length) - 1];
    return [{ ...delay, what: phase ?? `start: ${phases[0] ?? ''}` }];
  });
}

/** Returns a scenario with one launcher, which contributes to the summary rows. */
export function scenario(
  letters: string,
  what: string,
  measure: (environment: BenchmarkEnvironment, signal: AbortSignal) => Promise<Row[]>,
  more: Partial<EnvironmentOptions> = {},
): Scenario {
  return {
    letters,
    what,
    run: async (options) => {
      const { result, facts } = await withEnvironment(what, { ...options, ...more }, measure);
      return { rows: result, launchers: [facts], eventLoops: loopsOf(facts, what) };
    },
  };
}

export async function withEnvironment<T>(
  what: string,
  options: EnvironmentOptions,
  measure: (environment: BenchmarkEnvironment, signal: AbortSignal) => Promise<T>,
): Promise<{ readonly result: T; readonly facts: LauncherFacts }> {
  const environment = await BenchmarkEnvironment.make(options);
  try {
    const result = await environment.measure(what, (signal) => measure(environment, signal));
    return { result, facts: await environment.clear() };
  } catch (error) {
    await environment.clear();
    throw error;
  }
}
