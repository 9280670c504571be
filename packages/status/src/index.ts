/**
 * The recorders to which a program reports facts, and the types of these facts. The pages made from them are the entry
 * point `@nodepool/status/web`, which a program loads only with a web endpoint.
 */
export * from './facts/activity.js';
export type * from './facts/capacity.js';
export * from './facts/decisions.js';
export { describeFault, describeObstacle } from './facts/describe-obstacle.js';
export * from './facts/health.js';
export * from './facts/timeline-recorder.js';
export { RecentFailures } from './history/recent-failures.js';
export { HISTORY_STEP_MS } from './history/history.js';
export { Recorder } from './history/recorder.js';
export { COST_RATE, NODE_COST, TENANT_COST } from './metrics/cost-metrics.js';
export { NodeTally } from './metrics/node-tally.js';
export { NODE_PHASE, REQUEST_PHASE, REQUEST_WAIT, reportPhases } from './metrics/phase-metrics.js';
export * from './metrics/status-gauges.js';
export type { Life, NodePhase } from './timeline/life.js';
export type { RequestLife } from './timeline/request-life.js';
export { TimelineSpans } from './traces/timeline-spans.js';
export { Timelines } from './timeline/timelines.js';
