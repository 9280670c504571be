/** Process of one cell of the matrix. */

import { terminalLog } from '../log.js';
import { runCell } from './cell.js';
import { periodsOf, resultOf, type CellOrder } from './measure.js';
import { TARGETS } from './targets.js';
import { troubleNamed } from './troubles.js';

process.once('message', ({ driver, trouble: title, isPreferred, seed, log }: CellOrder) => {
  const open = TARGETS.get(driver);
  if (open === undefined) throw new Error(`there is no driver ${driver} in the matrix`);
  const trouble = title === undefined ? undefined : troubleNamed(title);
  const periods = periodsOf(trouble);
  runCell({ ...periods, seed, open, trouble, isPreferred, log: log ? terminalLog : undefined }).then(
    (waits) => process.send?.(resultOf(waits, periods), () => process.exit()),
    (error: unknown) => {
      process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
      process.exit(1);
    },
  );
});
