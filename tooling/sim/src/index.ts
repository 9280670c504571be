/** Public API of the simulation. */
export type { CheckerOptions, Violation } from './checker.js';
export { cloudView, NO_CLOUD_FAULTS, type CloudLink, type CloudFaults } from './cloud-view.js';
export { KNOWN_GAPS } from './known-gaps.js';
export type { Mutation } from './mutation.js';
export { MUTATIONS } from './mutations/index.js';
export { RULES } from './rules/index.js';
export { simulate, type RunOptions, type RunResult } from './simulate.js';
