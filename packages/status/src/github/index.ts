/** The records of the bridge for GitHub Actions, and the explanation of its jobs. */
export * from './records.js';
export * from './explain-job.js';
