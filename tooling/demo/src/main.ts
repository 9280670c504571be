/**
 * The demonstration: starts ZooKeeper and a launcher with the example driver, follows one request, and keeps running
 * for exploration until it is interrupted. `--once` ends it after the request. The exit status is 0 only if every step
 * succeeded.
 */

import { parseArgs } from 'node:util';
import { interruption, Narrator } from '@nodepool/harness';
import { runDemonstration } from './demonstration.js';
import { Stage } from './stage.js';

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { once: { type: 'boolean', default: false } } });
  const interrupted = interruption();
  const narrator = new Narrator((line) => process.stdout.write(`${line}\n`));
  let stage: Stage | undefined;
  try {
    stage = await Stage.build(narrator, interrupted);
    await runDemonstration(stage, narrator, interrupted);
    if (!values.once) {
      narrator.text(stage.whereToLook());
      await stage.untilInterrupted(interrupted);
    }
  } catch (error) {
    if (!interrupted.aborted) {
      process.stderr.write(`\nThe demonstration failed: ${error instanceof Error ? error.message : String(error)}\n`);
      process.exitCode = 1;
    } else if (values.once) {
      process.exitCode = 130;
    }
  } finally {
    if (stage !== undefined) {
      narrator.say('stopping');
      await stage.clear();
    }
  }
}

void main();
