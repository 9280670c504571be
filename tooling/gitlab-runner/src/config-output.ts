/** Reads the output of `config_exec` strictly: GitLab ignores unknown keys, which hide a misspelt one. */

import { isJsonObject } from '@nodepool/core';

export interface ConfigOutput {
  readonly buildsDir?: string;
  readonly cacheDir?: string;
  readonly buildsDirIsShared?: boolean;
  readonly hostname?: string;
  readonly driver?: { readonly name?: string; readonly version?: string };
  readonly jobEnv?: Readonly<Record<string, string>>;
  readonly shell?: string;
}

const KEYS: Readonly<Record<string, 'string' | 'boolean' | 'object'>> = {
  builds_dir: 'string',
  cache_dir: 'string',
  builds_dir_is_shared: 'boolean',
  hostname: 'string',
  driver: 'object',
  job_env: 'object',
  shell: 'string',
};
const NOT_EMPTY = ['builds_dir', 'cache_dir'];

/** Throws an `Error` if the text is no JSON object with values of the documented types, as the runner does. */
export function readConfigOutput(text: string, violation: (message: string) => void): ConfigOutput {
  if (text === '') return {};
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new Error(`error while parsing JSON output: ${String(cause)}`, { cause });
  }
  if (!isJsonObject(value)) throw new Error('error while parsing JSON output: not an object');
  for (const [key, each] of Object.entries(value)) {
    const expected = KEYS[key];
    if (expected === undefined) violation(`config_exec printed the unknown key ${key}`);
    else if (typeof each !== expected || each === null) throw new Error(`config_exec: ${key} must be a ${expected}`);
    if (NOT_EMPTY.includes(key) && each === '') violation(`config_exec printed an empty ${key}`);
  }
  return {
    ...textOf('buildsDir', value['builds_dir']),
    ...textOf('cacheDir', value['cache_dir']),
    ...textOf('hostname', value['hostname']),
    ...textOf('shell', value['shell']),
    ...(typeof value['builds_dir_is_shared'] === 'boolean' ? { buildsDirIsShared: value['builds_dir_is_shared'] } : {}),
    ...(isJsonObject(value['driver']) ? { driver: readDriver(value['driver'], violation) } : {}),
    ...(isJsonObject(value['job_env']) ? { jobEnv: readStrings(value['job_env']) } : {}),
  };
}

function textOf<K extends string>(key: K, value: unknown): { [key in K]?: string } {
  return typeof value === 'string' ? ({ [key]: value } as { [key in K]?: string }) : {};
}

function readDriver(
  value: Readonly<Record<string, unknown>>,
  violation: (message: string) => void,
): { readonly name?: string; readonly version?: string } {
  for (const key of Object.keys(value)) {
    if (key !== 'name' && key !== 'version') violation(`config_exec printed the unknown key driver.${key}`);
  }
  return { ...textOf('name', value['name']), ...textOf('version', value['version']) };
}

function readStrings(value: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => {
      if (typeof each !== 'string') throw new Error(`config_exec: job_env.${key} must be a string`);
      return [key, each];
    }),
  );
}
