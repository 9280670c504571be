/** The gateway as a library, for tests and embedding. */
export { Gateway, type GatewayOptions } from './gateway.js';
export * from './metrics.js';
export { LiveSettings, type LiveSettingsOptions } from './settings/live-settings.js';
export { readSettings, SettingsError, type Settings } from './settings/settings.js';
