/** Replays a day of requests with another configuration, on a virtual clock. */
export { DayError, fileSource, readDay, type DaySource, type ReadDayOptions } from './day/read-day.js';
export type { Day, DayRequest, ObservedLaunch } from './day/day.js';
export {
  fit,
  FitError,
  fitText,
  trialText,
  type FitOptions,
  type FitResult,
  type FitTarget,
  type FitTrial,
} from './fit.js';
export { plan, type PlannedConfiguration, type PlanOptions, type PlanResult } from './plan.js';
export { replay, type ReplayOptions } from './replay.js';
export type { RunMeasures } from './result/measures.js';
export { planText } from './result/text.js';
