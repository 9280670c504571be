/** A simulated Amazon Web Services for development and tests. */
export type { CloudCall } from '@nodepool/simulated-cloud';
export type * from './api.js';
export type { AwsApiCall, AwsFault, FaultRule } from './faults.js';
export {
  ACCOUNT,
  AMAZON,
  BUCKET,
  DEFAULT_SETTINGS,
  INSTANCE_PROFILE,
  KEY_NAME,
  KMS_KEY_ARN,
  QUEUE,
  REGION,
  REGIONS,
  ROLE_ARN,
  STRANGER,
  type AwsSettings,
} from './settings.js';
export { startSimulatedAws } from './start.js';
