/** One call of GARM: its command and variables, and the exit codes of an external provider. */

import { lstatSync } from 'node:fs';
import { fileFaultOf } from '@nodepool/core';
import { UsageError } from '../command-context.js';
import type { Environment } from '../gitlab/job.js';

/** Versions of the interface for external providers that this program implements. */
export const INTERFACE_VERSIONS = ['v0.1.0', 'v0.1.1'] as const;

/** Exit codes that GARM tells apart from 1. */
export const NOT_FOUND = 30;
export const DUPLICATE = 31;

/** GARM's documentation names the last two `Start` and `Stop`. */
const COMMANDS = [
  'CreateInstance',
  'DeleteInstance',
  'GetInstance',
  'ListInstances',
  'RemoveAllInstances',
  'StartInstance',
  'StopInstance',
  'GetVersion',
  'GetSupportedInterfaceVersions',
  'ValidatePoolInfo',
  'GetConfigJSONSchema',
  'GetExtraSpecsJSONSchema',
] as const;
export type GarmCommand = (typeof COMMANDS)[number];
const ALIASES: Readonly<Record<string, GarmCommand>> = { Start: 'StartInstance', Stop: 'StopInstance' };

const NEEDS_INSTANCE: readonly GarmCommand[] = ['DeleteInstance', 'GetInstance', 'StartInstance', 'StopInstance'];
const NEEDS_POOL: readonly GarmCommand[] = ['CreateInstance', 'ListInstances'];

export interface GarmCall {
  readonly command: GarmCommand;
  readonly configFile: string;
  readonly controller: string;
  /** Empty if GARM does not name a pool, as in calls of version v0.1.0 for one instance. */
  readonly pool: string;
  /** Id of the lease or name of the instance; empty in calls that are not for one instance. */
  readonly instance: string;
  /** Extra specs of the pool as JSON text; empty if GARM sends none. */
  readonly extraSpecs: string;
}

/** An error for which GARM has an exit code of its own. */
export class GarmError extends Error {
  constructor(
    message: string,
    readonly exitCode: typeof NOT_FOUND | typeof DUPLICATE,
  ) {
    super(message);
    this.name = 'GarmError';
  }
}

/** Reads the variables. Throws `UsageError` if a variable of the command is missing. */
export function readCall(env: Environment): GarmCall {
  const named = env['GARM_COMMAND'] ?? '';
  const command = ALIASES[named] ?? COMMANDS.find((each) => each === named);
  if (command === undefined) {
    throw new UsageError(
      named === '' ? 'GARM calls this program; GARM_COMMAND is missing' : `unknown command ${named}`,
    );
  }
  const version = env['GARM_INTERFACE_VERSION'] ?? '';
  if (version !== '' && !INTERFACE_VERSIONS.some((each) => each === version)) {
    throw new UsageError(`interface version ${version} is not supported; use ${INTERFACE_VERSIONS.join(' or ')}`);
  }
  const required = (name: string): string => {
    const value = env[name] ?? '';
    if (value === '') throw new UsageError(`${command} needs the variable ${name}`);
    return value;
  };
  const optional = (name: string): string => env[name] ?? '';
  const configFile = required('GARM_PROVIDER_CONFIG_FILE');
  try {
    lstatSync(configFile);
  } catch (error) {
    throw new UsageError(`the configuration file ${configFile} cannot be read: ${fileFaultOf(error)}`);
  }
  return {
    ...{ command, configFile },
    controller: required('GARM_CONTROLLER_ID'),
    pool: NEEDS_POOL.includes(command) ? required('GARM_POOL_ID') : optional('GARM_POOL_ID'),
    instance: NEEDS_INSTANCE.includes(command) ? required('GARM_INSTANCE_ID') : '',
    // Standard base64, whose decoder ignores what is not part of it; the JSON is validated where it is used.
    extraSpecs: Buffer.from(optional('GARM_POOL_EXTRASPECS'), 'base64').toString('utf8'),
  };
}
