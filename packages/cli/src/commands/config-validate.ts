/** `nodepool config-validate`: reports every problem of the configuration in one run. */

import { formatProblem, type LoadResult } from '@nodepool/config';
import { RefusedError, type ConsoleContext } from '../command-context.js';

/** Prints the problems. Throws `RefusedError` if there are any, or if a provider cannot be served. */
export function configValidate({ out }: ConsoleContext, result: LoadResult): void {
  if (result.ok) {
    for (const warning of result.warnings) out.note(`warning: ${formatProblem(warning)}`);
    if (result.unserved.size > 0) {
      throw new RefusedError(
        `the configuration is valid, but with what is installed here these providers are not served: ${[...result.unserved].join(', ')}`,
      );
    }
    out.print('the configuration is valid');
    return;
  }
  for (const problem of result.problems) out.print(formatProblem(problem));
  const { length } = result.problems;
  throw new RefusedError(`the configuration has ${length} problem${length === 1 ? '' : 's'}`);
}
