/** A simulated GitHub with runner scale sets for development and tests. */
export type { CloudCall } from '@nodepool/simulated-cloud';
export type { CallFault, FaultRule, MessageFault } from './faults.js';
export type { InProcessRunner, RunnerEnd } from './in-process-runner.js';
export type { InspectedJob, InspectedRunner, InspectedScaleSet } from './inspector.js';
export type { JobRequest, JobResult, JobState } from './records.js';
export { RUNNER_BEHAVIOURS, type RunnerBehaviour } from './runner-behaviour.js';
export { DEFAULT_SETTINGS, DEFAULT_WORLD, type GithubSettings, type World } from './settings.js';
export type { SimulatedGithub, SimulatedGithubOptions } from './api.js';
export { startSimulatedGithub } from './start.js';
export { RUNNER_FILE, writeRunner } from './stand-in.js';
