/** A Nodepool driver for Amazon Web Services. */
export { awsDriver, driver, driver as default } from './driver.js';
export { AwsAdapter } from './adapter.js';
export type { AwsLabel, AwsProvider } from './config.js';
