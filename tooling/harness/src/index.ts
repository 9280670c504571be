/** Runs the built programs as users run them: for the demonstration, the end-to-end tests and the benchmarks. */
export { listOption, runCommandLine, UsageError } from './command-line.js';
export { conditionMet, labelsOffered, noNodesLeft, registeredPools } from './conditions.js';
export {
  exampleConfig,
  zooKeeperServers,
  type ExampleConfigOptions,
  type ExampleProvider,
  type ZooKeeperAddress,
} from './example-config.js';
export {
  configFileOf,
  startBridge,
  startBuilder,
  startGateway,
  startLauncher,
  writeDaemonConfig,
  type DaemonOptions,
} from './daemon.js';
export { interruption } from './interruption.js';
export { Narrator } from './narrator.js';
export { describeExit, Program, type Exit, type ProgramOptions } from './process.js';
export { libraryRequestorPath, programPath, requestorPath, type ProgramName } from './programs.js';
export {
  startRequestor,
  type RequestorKind,
  type RequestorResult,
  type RequestReport,
  type RunningRequestor,
  type Summary,
} from './requestor-process.js';
export { reportTotals, runTestFiles, type TestFiles, type TestTotals } from './test-files.js';
