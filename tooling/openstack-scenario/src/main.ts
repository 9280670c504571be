/**
 * The scenario: the built launcher with the OpenStack driver serves Zuul-like requests on real OpenStack services.
 * Prints a table. The exit status is 0 only if all results are as required, or if there are no services (SKIPPED).
 */

import { parseArgs } from 'node:util';
import { untilAborted } from '@nodepool/core';
import { interruption, listOption, Narrator, runCommandLine } from '@nodepool/harness';
import { realCloud, simulatedCloud } from './cloud.js';
import { FULL_SIZES, runScenes, SMALL_SIZES, tableOf } from './run-scenes.js';
import { scenes } from './scenes.js';

const HELP = `Usage: pnpm scenario:openstack [options]

Runs the launcher with the OpenStack driver on real OpenStack services, asks it for nodes as Zuul does, and prints a table.

  --simulated       on a simulated OpenStack
  --small           fewer nodes
  --only a,b,…      only these scenes
  --help            this text

Exit status: 0 everything was as it should be, or there are no services (SKIPPED); 1 something was not; 2 wrong usage;
130 it was interrupted.

Example:
  $ pnpm scenario:openstack --simulated --small
`;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      simulated: { type: 'boolean' },
      small: { type: 'boolean' },
      only: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return;
  }
  const names = scenes.map(({ name }) => name);
  const only = values.only === undefined ? names : listOption('--only', values.only, names);
  const interrupted = interruption();
  const narrator = new Narrator((line) => process.stderr.write(`${line}\n`));
  const say = (line: string): void => narrator.say(line);
  const cloud = values.simulated === true ? await simulatedCloud() : await realCloud(say, interrupted);
  if (typeof cloud === 'string') {
    process.stdout.write(`SKIPPED: ${cloud}\n`);
    return;
  }
  try {
    const sizes = values.small === true ? SMALL_SIZES : FULL_SIZES;
    const rows = await untilAborted(runScenes({ cloud, sizes, only, say }), interrupted);
    process.stdout.write(`\nOn the ${cloud.kind} OpenStack:\n${tableOf(rows)}\n`);
    if (!rows.every(({ met }) => met)) process.exitCode = 1;
  } finally {
    await cloud.close();
  }
}

runCommandLine(HELP, main);
