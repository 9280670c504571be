/** The command line of `nodepool-builder`. */

import { packageVersion } from '@nodepool/core';
import { addStatusPort, type DaemonProgram, type StatusPortFlags } from '@nodepool/daemon';
import { InvalidArgumentError } from 'commander';

export interface BuilderFlags extends StatusPortFlags {
  readonly buildWorkers: number;
  readonly uploadWorkers: number;
}

export const PROGRAM: DaemonProgram<BuilderFlags> = {
  name: 'nodepool-builder',
  description: 'Builds disk images, uploads them to clouds, and deletes old images.',
  version: packageVersion(__dirname),
  help: {
    stop: [
      'stop after the running builds and uploads, perhaps hours. A second signal aborts them,',
      'a third one ends the program at once.',
    ],
    example: '-s /etc/nodepool/secure.yaml --upload-workers 8',
  },
  addOptions: (command) => {
    command
      .option('--build-workers <number>', 'limit of simultaneous builds; 0: none here', count, 1)
      .option('--upload-workers <number>', 'limit of simultaneous uploads; 0: none here', count, 4);
    addStatusPort(command, 'status, metrics and probes', '0.0.0.0');
  },
  readOptions: (command) => command.opts(),
};

function count(text: string): number {
  const value = Number(text);
  if (!/^[0-9]+$/.test(text) || !Number.isSafeInteger(value))
    throw new InvalidArgumentError('It must be a number, 0 or more.');
  return value;
}
