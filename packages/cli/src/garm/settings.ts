/** The configuration file of the GARM provider, and the extra specs of its pools. */

import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { formatProblem, readBySchema } from '@nodepool/config';
import { fileFaultOf, type JsonSchema } from '@nodepool/core';
import { CommandError } from '../command-context.js';

const TEXT = { type: 'string', minLength: 1 } as const;
/** Longest lifetime of a lease, 30 days, in seconds. */
const MAX_LIFETIME_S = 2_592_000;
/** A week: longer than GitHub lets a job run. */
const DEFAULT_LIFETIME_S = 604_800;
/** GARM ends a creation after `runner_bootstrap_timeout`, 20 minutes by default. */
const DEFAULT_TIMEOUT_S = 900;

export const CONFIG_SCHEMA: JsonSchema = {
  type: 'object',
  required: ['gateway', 'token-file'],
  additionalProperties: false,
  properties: {
    gateway: { ...TEXT, description: 'Address of the gateway' },
    'token-file': { ...TEXT, description: 'File with the token' },
    identity: { ...TEXT, description: 'Private key for logins at nodes' },
    user: { ...TEXT, description: 'Login name; default: that of the node' },
    'runner-user': { ...TEXT, pattern: '^[A-Za-z_][A-Za-z0-9_-]*$', description: 'User who runs the runner: runner' },
    lifetime: {
      ...{ type: 'integer', minimum: 60, maximum: MAX_LIFETIME_S },
      description: `Longest life of a runner in seconds: ${DEFAULT_LIFETIME_S}`,
    },
    timeout: {
      ...{ type: 'integer', minimum: 1, maximum: 86_400 },
      description: `Limit of the wait for a node in seconds: ${DEFAULT_TIMEOUT_S}`,
    },
    priority: { type: 'integer', minimum: 0, maximum: 999, description: 'Lower is served first' },
  },
};

export const EXTRA_SPECS_SCHEMA: JsonSchema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    runner_install_template: { type: 'string', description: 'Script that installs the runner, base64' },
    pre_install_scripts: {
      ...{ type: 'object', additionalProperties: { type: 'string' } },
      description: 'Scripts that root runs before, base64, in the order of their names',
    },
    extra_context: {
      ...{ type: 'object', additionalProperties: { type: 'string' } },
      description: 'Values for the template, as .ExtraContext',
    },
    priority: { type: 'integer', minimum: 0, maximum: 999, description: 'Lower is served first' },
  },
};

export interface GarmSettings {
  readonly gateway: string;
  readonly tokenFile: string;
  readonly identity: string | undefined;
  readonly user: string | undefined;
  readonly runnerUser: string;
  /** Seconds. */
  readonly lifetime: number;
  /** Seconds. */
  readonly timeout: number;
  readonly priority: number | undefined;
}

export interface ExtraSpecs {
  /** Text of the template; undefined if there is none. */
  readonly template: string | undefined;
  readonly preInstallScripts: ReadonlyMap<string, Buffer>;
  readonly extraContext: ReadonlyMap<string, string>;
  readonly priority: number | undefined;
}

/** Reads the configuration file (YAML). Rejects with `CommandError`, which names every problem with its place. */
export async function readSettings(file: string): Promise<GarmSettings> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    throw new CommandError(`the configuration file ${file} cannot be read: ${fileFaultOf(error)}`, { cause: error });
  }
  return await readForm(text, file, CONFIG_SCHEMA, (value) => {
    const path = (name: string): string | undefined => {
      const given = textIn(value[name]);
      return given === undefined ? undefined : resolve(dirname(file), given);
    };
    return {
      gateway: textIn(value['gateway']) ?? '',
      tokenFile: path('token-file') ?? '',
      identity: path('identity'),
      user: textIn(value['user']),
      runnerUser: textIn(value['runner-user']) ?? 'runner',
      lifetime: numberIn(value['lifetime']) ?? DEFAULT_LIFETIME_S,
      timeout: numberIn(value['timeout']) ?? DEFAULT_TIMEOUT_S,
      priority: numberIn(value['priority']),
    };
  });
}

/** Reads the extra specs of a pool (JSON; an empty text stands for none). Rejects with `CommandError`. */
export async function readExtraSpecs(text: string): Promise<ExtraSpecs> {
  const given = text.trim() === '' || text.trim() === 'null' ? '{}' : text;
  return await readForm(given, 'extra_specs', EXTRA_SPECS_SCHEMA, (value) => {
    const template = textIn(value['runner_install_template']);
    const map = (key: string): [string, string][] => Object.entries((value[key] ?? {}) as Record<string, string>);
    return {
      template: template === undefined ? undefined : Buffer.from(template, 'base64').toString('utf8'),
      preInstallScripts: new Map(
        map('pre_install_scripts')
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .map(([name, script]) => [name, Buffer.from(script, 'base64')]),
      ),
      extraContext: new Map(map('extra_context')),
      priority: numberIn(value['priority']),
    };
  });
}

async function readForm<T>(
  text: string,
  name: string,
  schema: JsonSchema,
  interpret: (value: Readonly<Record<string, unknown>>) => T,
): Promise<T> {
  const result = await readBySchema(text, name, () => ({ schema, interpret }));
  if (result.ok) return result.value;
  throw new CommandError(`${name} cannot be used:\n${result.problems.map(formatProblem).join('\n')}`);
}

function textIn(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function numberIn(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined;
}
