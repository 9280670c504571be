/** A simulated Azure for development and tests. */
export { startSimulatedAzure, type SimulatedAzure, type SimulatedAzureOptions } from './start.js';
export { ACCOUNT, DEFAULT_SETTINGS, SAMPLE, SAMPLE_GALLERY, type CloudSettings } from './settings.js';
export { SAMPLE_SUBNET_ID } from './machines.js';
export type { CloudCall } from '@nodepool/simulated-cloud';
export type { CallFault, FaultRule, VmFailure } from './faults.js';
export type { Resource, ResourceType } from './store.js';
export { httpControls } from '@nodepool/simulated-cloud';
