/** The labels of Slurm's nodes. */

import { UsageError } from '../command-context.js';

/**
 * Returns a function from the name of a node to its label, for values of the option `--label`: `LABEL`, or
 * `NODES=LABEL` with `*` for any characters. The first one that fits counts. Throws `UsageError`.
 */
export function labelsOf(values: readonly string[]): (node: string) => string | undefined {
  const rules = values.map((value) => {
    const at = value.indexOf('=');
    const [nodes, label] = at < 0 ? ['*', value] : [value.slice(0, at), value.slice(at + 1)];
    if (nodes === '' || label === '') throw new UsageError(`--label ${value} is neither LABEL nor NODES=LABEL`);
    const pattern = nodes
      .split('*')
      .map((part) => part.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
      .join('.*');
    return { pattern: new RegExp(`^${pattern}$`, 's'), label };
  });
  if (rules.length === 0) throw new UsageError('set --label to the label of the nodes');
  return (node) => rules.find(({ pattern }) => pattern.test(node))?.label;
}
