/** A Nodepool driver for Google Compute Engine. */
export { driver, driver as default } from './driver.js';
export { GceAdapter } from './adapter.js';
export type { GceLabel, GceProvider } from './config.js';
