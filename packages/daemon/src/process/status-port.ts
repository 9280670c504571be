/** The options of a program that serves HTTP to operators and monitoring only if it gets a port. */

import { InvalidArgumentError, type Command } from 'commander';
import type { EndpointAddress } from '../web/http-server.js';

export interface StatusPortFlags {
  /** Port of the web endpoint; undefined for none. */
  readonly statusPort?: number;
  readonly statusAddress: string;
}

/** Adds the options. `served` names what the port serves, for the help. */
export function addStatusPort(command: Command, served: string, defaultAddress: string): Command {
  return command
    .option('--status-port <port>', `port for ${served} (default: off)`, parsePort)
    .option('--status-address <address>', 'its address', defaultAddress);
}

/** Returns the address of the web endpoint; undefined if it is disabled. */
export function statusEndpoint({ statusPort, statusAddress }: StatusPortFlags): EndpointAddress | undefined {
  if (statusPort === undefined) return undefined;
  const otherAddress = 'choose others with --status-port and --status-address';
  return { port: statusPort, address: statusAddress, otherAddress };
}

function parsePort(text: string): number {
  const value = Number(text);
  if (!/^[0-9]+$/.test(text) || value > 65_535) {
    throw new InvalidArgumentError('It must be a port, 0 to 65535; 0 is any free port.');
  }
  return value;
}
