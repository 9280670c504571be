/** Worker process of `run-seeds.ts`, which runs the requested seeds one at a time. */

import type { SeedOrder } from './run-seeds.js';
import { simulate } from './simulate.js';

process.on('message', (order: SeedOrder) => {
  simulate({ seed: order.seed, without: new Set(order.without) }).then(
    (result) => process.send?.(result),
    (error: unknown) => {
      process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
      process.exit(1);
    },
  );
});
