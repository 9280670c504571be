/** The records of the bridge for GitHub Actions, which also the command line reads. */
export * from './records.js';
