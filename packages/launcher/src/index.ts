/** The launcher as a library, for the program itself, tests and simulations. */
export type { CapacityOptions, LauncherContext, LauncherOptions, LoginScanner } from './context.js';
export { DecisionLog } from './diagnostics/decisions.js';
export { Launcher } from './launcher.js';
export type { ProviderActivity, PoolActivity, LabelActivity, RequestActivity } from './diagnostics/activity.js';
export * from './diagnostics/launcher-metrics.js';
export { NODE_PHASE, REQUEST_PHASE, REQUEST_WAIT, reportPhases } from './diagnostics/phase-metrics.js';
export { Recorder, type RecorderOptions } from './diagnostics/recorder.js';
export { Timelines, type TimelineEvents, type TimelineOptions } from './diagnostics/timelines.js';
export type { TimelineRecorder } from './diagnostics/timeline-recorder.js';
export type { Explanation, PoolExplanation, DecisionExplanation } from './diagnostics/explanation.js';
export { RecentFailures, type RecentFailure } from './diagnostics/recent-failures.js';
export type * as StatusModel from './web/status/client/model.js';
export { createWebServer, type StatusSources, type WebContext, type WebServer } from './web/index.js';
