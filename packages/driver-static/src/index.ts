/** A driver for machines that exist without being created. */
export { driver, driver as default, staticDriver, type StaticDriverOptions } from './driver.js';
export type { Addresses, Resolve } from './addresses.js';
