/** Worker process of `simulation-pool.ts`, which runs the requested simulations one at a time. */

import { simulateBridges } from './github/simulate-bridges.js';
import { MUTATIONS } from './mutations/index.js';
import { simulate } from './simulate.js';
import type { RunOrder } from './simulation-pool.js';

process.on('message', ({ mutation, without = [], bridges = false, ...options }: RunOrder) => {
  const spoilt = MUTATIONS.find(({ name }) => name === mutation);
  if (mutation !== undefined && spoilt === undefined) throw new Error(`no mutation "${mutation}"`);
  const ignored = new Set(without);
  const run = bridges
    ? simulateBridges({ ...options, without: ignored })
    : simulate({ ...options, mutation: spoilt, without: ignored });
  run.then(
    (result) => process.send?.(result),
    (error: unknown) => {
      process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
      process.exit(1);
    },
  );
});
