/** Runs the built programs as users run them: for the demonstration, the end-to-end tests and the benchmarks. */
export {
  exampleConfig,
  type ExampleConfigOptions,
  type ExampleProvider,
  type ZooKeeperAddress,
} from './example-config.js';
export { configFileOf, startLauncher, type LauncherOptions } from './launcher.js';
export { describeExit, Program, type Exit, type ProgramOptions } from './process.js';
export { programPath, requestorPath, type ProgramName } from './programs.js';
export {
  conditionMet,
  labelsOffered,
  noNodesLeft,
  registeredPools,
  Requestor,
  type FinishedRequest,
  type HeldNode,
} from './requestor.js';
