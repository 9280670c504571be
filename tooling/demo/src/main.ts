/**
 * The demonstration: starts ZooKeeper and a launcher with the example driver, follows one request, and keeps running
 * for exploration until it is interrupted. `--once` ends it after the request. The exit status is 0 only if every step
 * succeeded.
 */

import { parseArgs } from 'node:util';
import { interruption, Narrator } from '@nodepool/harness';
import { runDemonstration } from './demonstration.js';
import { DemoEnvironment } from './environment.js';

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { once: { type: 'boolean', default: false } } });
  const interrupted = interruption();
  const narrator = new Narrator((line) => process.stdout.write(`${line}\n`));
  let environment: DemoEnvironment | undefined;
  try {
    environment = await DemoEnvironment.build(narrator, interrupted);
    await runDemonstration(environment, narrator, interrupted);
    if (!values.once) {
      narrator.text(environment.whereToLook());
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
      await environment.clear();
    }
  }
}

void main();
