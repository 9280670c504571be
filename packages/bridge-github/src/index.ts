/** The bridge for GitHub Actions, for tests and for programs that contain it. */
export { Bridge, type BridgeOptions } from './bridge.js';
export * from './metrics.js';
export { settingsSchema } from './settings/schema.js';
export { readSettings, type Settings } from './settings/settings.js';
