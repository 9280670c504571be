/** The bridge for GitHub Actions, for tests and for programs that contain it. */
export { Bridge, type BridgeOptions } from './bridge.js';
export * from './metrics.js';
export type { NodeLogin, RunnerEnd, RunnerEvents, RunnerProcess, RunnerProcesses } from './runners/runner-process.js';
export type { StartSettings } from './runners/runner-script.js';
export { scopeOf, type GithubScope } from './github/scope.js';
export { settingsSchema } from './settings/schema.js';
export { readSettings, type Settings } from './settings/settings.js';
