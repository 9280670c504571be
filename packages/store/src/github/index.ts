/** Data of the bridge for GitHub Actions. */
export * from './records.js';
export * from './explain-job.js';
