/**
 * The demonstration: starts ZooKeeper and a launcher with the example driver, follows one request, and keeps running
 * for exploration until it is interrupted. `--github` follows a job of GitHub Actions instead. `--once` ends it after
 * that. The exit status is 0 only if every step succeeded.
 */

import { parseArgs } from 'node:util';
import { interruption, Narrator } from '@nodepool/harness';
import { runDemonstration } from './demonstration.js';
import { DemoEnvironment } from './environment.js';
import { GithubDemo } from './github.js';

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { once: { type: 'boolean', default: false }, github: { type: 'boolean', default: false } },
  });
  const interrupted = interruption();
  const narrator = new Narrator((line) => process.stdout.write(`${line}\n`));
  let environment: DemoEnvironment | undefined;
  let github: GithubDemo | undefined;
  try {
    environment = await DemoEnvironment.build(narrator, interrupted);
    if (values.github) github = await GithubDemo.start(environment, narrator);
    if (github === undefined) await runDemonstration(environment, narrator, interrupted);
    else await github.run(narrator, interrupted);
    if (!values.once) {
      narrator.text(environment.whereToLook() + (github?.whereToLook() ?? ''));
      await environment.untilInterrupted(interrupted);
    }
  } catch (error) {
    if (!interrupted.aborted) {
      process.stderr.write(`\nThe demonstration failed: ${error instanceof Error ? error.message : String(error)}\n`);
      process.exitCode = 1;
    } else if (values.once) {
      process.exitCode = 130;
    }
  } finally {
    if (environment !== undefined) {
      narrator.say('stopping');
      await github?.stop();
      await environment.clear();
    }
  }
}

void main();
