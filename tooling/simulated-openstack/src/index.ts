/** A simulated OpenStack for development and tests, and the cases that compare it with the real one. */
export type { SimulatedOpenStack, SimulatedOpenStackOptions } from './api.js';
export type {
  BootBehaviour,
  CallFault,
  CloudCall,
  DeletionBehaviour,
  BehaviourRule,
  FaultPlan,
  FaultRule,
  ServerFacts,
  ServerBehaviour,
} from './faults.js';
export type {
  InspectedFloatingIp,
  InspectedImage,
  InspectedPort,
  InspectedServer,
  InspectedVolume,
  Inspector,
  Leftovers,
} from './inspect.js';
export type { ProjectQuota } from './quotas.js';
export { DEFAULT_SETTINGS, type CloudSettings, type Quota } from './settings.js';
export { startSimulatedOpenStack } from './start.js';
export {
  isRealOpenStackUnderTest,
  openStackUnderTest,
  REAL_CLOUD_VARIABLE,
  type OpenStackUnderTest,
} from './under-test.js';
export { ApiClient, textOf, type ApiAnswer, type RequestParts } from './suite/api-client.js';
export { TestBed, type ApiCase } from './suite/test-bed.js';
export { apiCases } from './suite/cases.js';
export { httpControls } from '@nodepool/simulated-cloud';
