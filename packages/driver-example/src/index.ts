/** A driver for a cloud without computers, as an example for drivers and for experiments. */
export { driver, driver as default, exampleDriver, type ExampleDriverOptions } from './driver.js';
export { ExampleCloud, type ExampleCloudOptions } from './cloud/cloud.js';
export { CloudSettingsError, readCloudSettings } from './cloud/settings-reader.js';
export type { CloudQuota, CloudSettings, Fault, InstanceSize, Range } from './cloud/settings.js';
export { CloudError, type CloudErrorCode, type CloudInstance, type InstanceSpec } from './cloud/types.js';
