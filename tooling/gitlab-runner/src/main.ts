/** A runner as a process of its own, which a test can kill: executes the job of a JSON file `{config, job}`. */

import { readFileSync } from 'node:fs';
import type { RunnerConfig } from './executor.js';
import type { Job } from './job.js';
import { GitLabRunner } from './runner.js';

async function main(): Promise<void> {
  const { config, job } = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as {
    readonly config: RunnerConfig;
    readonly job: Job;
  };
  const result = await new GitLabRunner(config).run(job, (phase, stage) => {
    process.stdout.write(`${stage ?? phase}\n`);
  });
  process.stdout.write(`${result.status}\n`);
}

void main();
