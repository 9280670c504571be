import { inspect } from 'node:util';
import { CommandError, type Output } from './command-context.js';

/** Prints the message; with `debug` also stacks and causes. */
export function printFailure(out: Output, error: unknown, debug: boolean): void {
  out.note(`nodepool: ${error instanceof Error ? error.message : String(error)}`);
  if (debug) out.note(inspect(error, { depth: 5 }));
  else if (!(error instanceof CommandError) && !isExpected(error)) out.note('run it again with -d for details');
}

/** Errors of other packages whose messages name the remedy. */
const EXPECTED_ERRORS = new Set([
  'ssh',
  'zookeeper-unreachable',
  'zookeeper-chroot',
  'tls-files',
  'logging-config',
  'log-file',
  'interrupted',
  'image-data',
  'installation-id',
]);

function isExpected(error: unknown): boolean {
  return error instanceof Error && 'code' in error && EXPECTED_ERRORS.has(String(error.code));
}
