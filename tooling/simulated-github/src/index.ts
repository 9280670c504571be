/** A simulated GitHub with runner scale sets for development and tests. */
export type { CloudCall } from '@nodepool/simulated-cloud';
export type { CallFault, FaultRule, MessageFault } from './faults.js';
export type { InspectedJob, InspectedRunner, InspectedScaleSet } from './inspector.js';
export type { JobRequest, JobResult, JobState } from './jobs.js';
export { RUNNER_BEHAVIOURS, type RunnerBehaviour } from './runner-behaviour.js';
export { DEFAULT_SETTINGS, DEFAULT_WORLD, type GithubSettings, type World } from './settings.js';
export { startSimulatedGithub, type SimulatedGithub, type SimulatedGithubOptions } from './start.js';
export { RUNNER_FILE, writeRunner } from './stand-in.js';
