/** `nodepool config-validate`: reports every problem of the configuration in one run. */

import { formatProblem, type LoadResult } from '@nodepool/config';
import { RefusedError, type ConsoleContext } from '../command-context.js';

/**
 * Prints the problems. Throws `RefusedError` if there are any, if a provider cannot be served, or if the result lists
 * incompatible keys.
 */
export function configValidate({ out }: ConsoleContext, result: LoadResult): void {
  if (!result.ok) {
    for (const problem of result.problems) out.print(formatProblem(problem));
    throw new RefusedError(`the configuration has ${counted(result.problems.length, 'problem')}`);
  }
  for (const warning of result.warnings) out.note(`warning: ${formatProblem(warning)}`);
  for (const problem of result.incompatible) out.print(formatProblem(problem));
  if (result.incompatible.length > 0) {
    const keys = counted(result.incompatible.length, 'place');
    throw new RefusedError(`the configuration is valid, but the Python Nodepool cannot read it in ${keys}`);
  }
  if (result.unserved.size > 0) {
    throw new RefusedError(
      `the configuration is valid, but with what is installed here these providers are not served: ${[...result.unserved].join(', ')}`,
    );
  }
  out.print('the configuration is valid');
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}
