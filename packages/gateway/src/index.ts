/** The gateway as a library, for tests and embedding. */
export { Gateway, type GatewayOptions } from './gateway.js';
export * from './metrics.js';
export { settingsSource } from './settings/settings-source.js';
export { readSettings, type Settings } from './settings/settings.js';
