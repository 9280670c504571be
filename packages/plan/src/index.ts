/** Replays a day of requests with another configuration, on a virtual clock. */
export { DayError, fileSource, readDay, type DaySource } from './day/read-day.js';
export type { Day } from './day/day.js';
export { fit, FitError, fitText, trialText, type FitTarget } from './fit.js';
export { plan, type PlannedConfiguration } from './plan.js';
export { ReplayPool, type ConfigSource } from './replay-pool.js';
export { planText } from './result/text.js';
