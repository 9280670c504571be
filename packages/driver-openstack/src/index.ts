/** A Nodepool driver for OpenStack clouds. */
export { driver, driver as default, openStackDriver } from './driver.js';
export { OpenStackAdapter } from './adapter.js';
export type { OpenStackLabel, OpenStackPool, OpenStackProvider } from './config.js';
export type { Environment } from './client/cloud-files.js';
