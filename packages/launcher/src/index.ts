/** The launcher as a library, for the program itself, tests and simulations. */
export type { CapacityOptions, LauncherContext, LauncherOptions, LoginScanner } from './context.js';
export { DecisionLog } from './diagnostics/decisions.js';
export { Launcher } from './launcher.js';
export type { ProviderActivity, PoolActivity, LabelActivity, RequestActivity } from './diagnostics/activity.js';
export * from './diagnostics/metrics/launcher-metrics.js';
export { NODE_PHASE, REQUEST_PHASE, REQUEST_WAIT, reportPhases } from './diagnostics/metrics/phase-metrics.js';
export { Recorder, type RecorderOptions } from './diagnostics/history/recorder.js';
export { Timelines, type TimelineEvents, type TimelineOptions } from './diagnostics/timeline/timelines.js';
export type { TimelineRecorder } from './diagnostics/timeline/timeline-recorder.js';
export type { Explanation, PoolExplanation, DecisionExplanation } from '@nodepool/store';
export { RecentFailures, type RecentFailure } from './diagnostics/history/recent-failures.js';
export type * as StatusModel from './web/status/client/model.js';
export { createWebServer, type StatusSources, type WebContext, type WebServer } from './web/index.js';
