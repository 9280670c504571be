/** A simulated Google Compute Engine for development and tests. */
export type { CloudCall } from '@nodepool/simulated-cloud';
export type { CallFault, FaultRule } from './faults.js';
export type { InspectedImage } from './images.js';
export type { InspectedInstance } from './instances.js';
export type { InspectedObject } from './storage.js';
export { BUCKET, DEFAULT_SETTINGS, PROJECT, type CloudSettings } from './settings.js';
export { startSimulatedGce, type Inspector, type SimulatedGce, type SimulatedGceOptions } from './start.js';
export { httpControls } from '@nodepool/simulated-cloud';
export { startMetadataService, type MetadataService } from './metadata.js';
