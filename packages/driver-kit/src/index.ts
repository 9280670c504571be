/** The contract of Nodepool drivers, as tests for any driver and any test runner. */
export { ABILITIES, abilitiesExcept } from './abilities.js';
export { RULE_GROUPS } from './rule-groups.js';
export type { ContractCase, TestRunner } from './contract.js';
export { CONTRACT_VERSION, describeDriverContract, driverContract } from './contract.js';
export { contractPage } from './contract-page.js';
export { ContractViolation, type RuleGroup, type Rule } from './rule.js';
export type { RuleContext } from './rule-context.js';
export { SimulatedBackingNodes } from './simulated-backing.js';
export { SimulatedLogins } from './simulated-logins.js';
export * from './driver-fixture.js';
export { realTime, simulatedTime, type SimulatedTimeOptions, type TestTime } from './time.js';
export { callOn, INSTALLATION, instanceTags, nodeCleanup, nodeLaunch, requestFor } from './requests.js';
export { failureOf, TestProvider, type TestProviderOptions } from './test-provider.js';
