/** The parameters of a new instance, which GARM writes to the standard input of `CreateInstance`. */

import type { Readable } from 'node:stream';
import { isJsonObject, reasonOf, type JsonObject } from '@nodepool/core';
import { CommandError } from '../command-context.js';

/** Limit of the standard input (bytes). Scripts in the extra specs are its largest part. */
const MAX_INPUT_BYTES = 16_000_000;
const INSTANCE_NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$/;

export interface Tools {
  readonly os: string;
  readonly architecture: string;
  readonly downloadUrl: string;
  readonly filename: string;
  readonly temporaryToken: string;
}

export interface Bootstrap {
  readonly name: string;
  readonly pool: string;
  readonly image: string;
  readonly os: string;
  readonly arch: string;
  readonly tools: readonly Tools[];
  readonly repoUrl: string;
  readonly callbackUrl: string;
  readonly metadataUrl: string;
  readonly instanceToken: string;
  readonly runnerGroup: string;
  readonly labels: readonly string[];
  /** Extra specs of the pool as JSON text. */
  readonly extraSpecs: string;
  /** Certificates in PEM format; empty if there are none. */
  readonly authorities: string;
  readonly jitConfig: boolean;
  readonly bootDebug: boolean;
}

/** Reads the input to its end. Rejects with `CommandError` if it is not what GARM sends. */
export async function readBootstrap(stdin: Readable & { readonly isTTY?: boolean }): Promise<Bootstrap> {
  if (stdin.isTTY === true) throw new CommandError('CreateInstance reads the instance from the standard input');
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of stdin) {
    const bytes = Buffer.from(part as Uint8Array);
    size += bytes.length;
    if (size > MAX_INPUT_BYTES) throw new CommandError(`the input is larger than ${MAX_INPUT_BYTES} bytes`);
    parts.push(bytes);
  }
  let value: unknown;
  try {
    value = JSON.parse(Buffer.concat(parts).toString('utf8'));
  } catch (error) {
    throw new CommandError(`the input is not JSON: ${reasonOf(error)}`, { cause: error });
  }
  if (!isJsonObject(value)) throw new CommandError('the input is not a JSON object');
  return interpret(value);
}

function interpret(value: JsonObject): Bootstrap {
  const text = (key: string): string => {
    const field = value[key] ?? '';
    if (typeof field !== 'string') throw new CommandError(`the input's ${key} is not a text`);
    return field;
  };
  const options = isJsonObject(value['user_data_options']) ? value['user_data_options'] : {};
  const name = text('name');
  if (!INSTANCE_NAME.test(name)) throw new CommandError(`the input's name is not that of an instance`);
  const tools = Array.isArray(value['tools']) ? value['tools'].filter(isJsonObject) : [];
  const labels = Array.isArray(value['labels']) ? value['labels'] : [];
  return {
    ...{ name, pool: text('pool_id'), image: text('image'), os: text('os_type'), arch: text('arch') },
    ...{ repoUrl: text('repo_url'), callbackUrl: text('callback-url'), metadataUrl: text('metadata-url') },
    ...{ instanceToken: text('instance-token'), runnerGroup: text('github-runner-group') },
    tools: tools.map((tool) => ({
      ...{ os: stringIn(tool['os']), architecture: stringIn(tool['architecture']) },
      ...{ downloadUrl: stringIn(tool['download_url']), filename: stringIn(tool['filename']) },
      temporaryToken: stringIn(tool['temp_download_token']),
    })),
    labels: labels.filter((label) => typeof label === 'string'),
    extraSpecs: value['extra_specs'] == null ? '' : JSON.stringify(value['extra_specs']),
    // Go writes bytes as base64.
    authorities: Buffer.from(text('ca-cert-bundle'), 'base64').toString('utf8'),
    jitConfig: value['jit_config_enabled'] === true,
    bootDebug: options['enable_boot_debug'] === true,
  };
}

function stringIn(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
