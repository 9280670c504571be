/** Ways in which the stand-in for a runner can behave. */

export const RUNNER_BEHAVIOURS = [
  'normal',
  /** The process runs but never connects. */
  'never-connects',
  /** The process ends before it connects. */
  'dies-at-once',
  /** The runner is online and ends by itself before it gets a job. */
  'ends-without-job',
  /** The runner opens its session and never asks for a job. */
  'hangs-online',
  /** The process ends after the start of the job, without a report. */
  'dies-in-job',
  /** The process runs after the start of the job, but neither renews nor reports it. */
  'hangs-in-job',
  /** The runner renews the job and never reports its end, unless it is cancelled. */
  'never-ends-job',
] as const;

export type RunnerBehaviour = (typeof RUNNER_BEHAVIOURS)[number];

export function isRunnerBehaviour(text: unknown): text is RunnerBehaviour {
  return RUNNER_BEHAVIOURS.some((behaviour) => behaviour === text);
}
