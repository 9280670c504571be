/** Checks that refuse what GitHub's own client never sends. */

import { isJsonObject, type JsonObject, type JsonValue } from '@nodepool/core';
import { ApiError, jsonObjectIn } from '@nodepool/simulated-cloud';
import { ActionsError, invalidRequest } from './errors.js';
import type { GithubContext } from './faults.js';
import { API_VERSION, type GithubState } from './settings.js';

interface Types {
  readonly string: string;
  readonly integer: number;
  readonly boolean: boolean;
  readonly object: JsonObject;
  readonly array: readonly JsonValue[];
}

/** Allowed fields of an object; a name with `?` is optional. */
export type Fields = Readonly<Record<string, keyof Types>>;

/** An object with the given fields. */
export type Checked<F extends Fields> = {
  readonly [N in keyof F as N extends `${string}?` ? never : N]: Types[F[N]];
} & {
  readonly [N in keyof F as N extends `${infer Name}?` ? Name : never]?: Types[F[N]] | undefined;
};

const SYSTEM_INFO = {
  system: 'string',
  version: 'string',
  commit_sha: 'string',
  scale_set_id: 'integer',
  subsystem: 'string',
  'build_version?': 'string',
  'build_commit_sha?': 'string',
  'kind?': 'string',
} as const satisfies Fields;

/** Throws unless the header `User-Agent` is a JSON object with the client's system information. */
export function checkUserAgent({ headers }: GithubContext, { settings }: GithubState): void {
  if (!settings.strictUserAgent) return;
  const text = headers['user-agent'] ?? '';
  const what = 'The header User-Agent is not the system information';
  checked(parsed(text), SYSTEM_INFO, (problem) => invalidRequest(`${what}: ${problem}`));
}

/** Throws unless the call names the version of the API in its query or in its header `Accept`. */
export function checkVersion({ method, query, headers }: GithubContext): void {
  const inAccept = /;\s*api-version=([^;,\s]+)/.exec(headers.accept ?? '')?.[1];
  const version = query.get('api-version') ?? inAccept;
  if (version === API_VERSION) return;
  if (version === undefined) {
    const how = 'in the header Accept (e.g. "application/json; api-version=1.0") or as a query parameter';
    const message = `No api-version was supplied for the "${method}" request. The version must be supplied ${how}.`;
    throw new ActionsError(400, 'VssVersionNotSpecifiedException', message);
  }
  throw new ActionsError(400, 'VssVersionOutOfRangeException', `The api-version "${version}" is not supported.`);
}

/** Throws if the query has a parameter that the call does not know. */
export function checkQuery({ query }: GithubContext, allowed: readonly string[]): void {
  const unknown = [...query.keys()].find((name) => name !== 'api-version' && !allowed.includes(name));
  if (unknown !== undefined) throw invalidRequest(`The query parameter "${unknown}" is unknown`);
}

/** Returns the body of a call to the Actions service. Throws if it has an unknown, missing or malformed field. */
export function checkedBody<F extends Fields>(context: GithubContext, fields: F): Checked<F> {
  checkJsonType(context);
  const body = jsonObjectIn(context, () => invalidRequest('The body is not a JSON object'));
  return checked(body, fields, invalidRequest);
}

/** Returns the elements of a body that is a list of integers. */
export function integersIn(context: GithubContext): readonly number[] {
  checkJsonType(context);
  const value = parsed(context.body.toString('utf8'));
  if (!Array.isArray(value)) throw invalidRequest('The body is not a list of integers');
  return value.map((each: unknown) => {
    if (Number.isSafeInteger(each)) return Number(each);
    throw invalidRequest('The body is not a list of integers');
  });
}

/** Returns the integer in a path or query. */
export function integerOf(name: string, text: string | undefined): number {
  if (text !== undefined && /^\d{1,15}$/.test(text)) return Number(text);
  throw invalidRequest(`"${name}" must be an integer`);
}

/** Returns a value that is an object with the given fields. Throws what `fail` makes of the problem if it is not. */
export function checked<F extends Fields>(value: unknown, fields: F, fail: (problem: string) => Error): Checked<F> {
  const problem = problemIn(value, fields);
  if (problem !== undefined) throw fail(problem);
  return value as Checked<F>;
}

function problemIn(value: unknown, fields: Fields): string | undefined {
  if (!isJsonObject(value)) return 'It is not a JSON object';
  for (const [name, type] of Object.entries(fields)) {
    const found = value[name.replace('?', '')];
    if (found === undefined && name.endsWith('?')) continue;
    if (found === undefined) return `The field "${name}" is missing`;
    if (!hasType(found, type)) return `The field "${name.replace('?', '')}" is not of type ${type}`;
  }
  const unknown = Object.keys(value).find((name) => !(name in fields) && !(`${name}?` in fields));
  return unknown === undefined ? undefined : `The field "${unknown}" is unknown`;
}

function hasType(value: unknown, type: keyof Types): boolean {
  if (type === 'integer') return Number.isSafeInteger(value);
  if (type === 'array') return Array.isArray(value);
  if (type === 'object') return isJsonObject(value);
  return typeof value === type;
}

function checkJsonType({ headers }: GithubContext): void {
  const [type = ''] = (headers['content-type'] ?? '').split(';');
  if (type.trim() === 'application/json') return;
  throw new ApiError({ status: 415, body: { message: `The content type "${type}" is not supported` } });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The caller reports that the value is not the expected one.
    return undefined;
  }
}
