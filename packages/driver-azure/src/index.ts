/** A Nodepool driver for Microsoft Azure. */
export { azureDriver, driver, driver as default } from './driver.js';
export { AzureAdapter } from './adapter.js';
export type { AzureLabel, AzureProvider } from './config.js';
