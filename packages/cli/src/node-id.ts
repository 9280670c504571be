import { CommandError } from './command-context.js';

/** Returns the ten-digit id; leading zeros may be omitted. Throws `CommandError`. */
export function parseNodeId(text: string): string {
  if (!/^\d{1,10}$/.test(text)) {
    throw new CommandError(`${JSON.stringify(text)} is not the id of a node: ids are numbers, see \`nodepool list\``);
  }
  return text.padStart(10, '0');
}
