/** A driver for existing machines. */
export { driver, driver as default, staticDriver, type StaticDriverOptions } from './driver.js';
export type { Addresses, Resolve } from './addresses.js';
