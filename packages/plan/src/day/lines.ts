/** The lines of a journal or of a file of requests, checked. docs/planning.md describes them. */

import { isJsonObject, type JsonObject, type JsonValue, type Resources } from '@nodepool/core';
import { FieldError, Fields } from './fields.js';

/** Milliseconds since the epoch and durations in milliseconds. */
export interface RequestLine {
  readonly kind: 'request';
  readonly id: string | undefined;
  readonly createdMs: number;
  readonly labels: readonly string[];
  readonly tenant: string | null;
  readonly requestor: string | null;
  readonly priority: number;
  readonly relativePriority: number;
  /** Use of the nodes, in the order of the labels; undefined if it is not known. */
  readonly heldMs: readonly number[] | undefined;
  readonly result: 'fulfilled' | 'failed' | 'cancelled' | undefined;
  /** Time from the creation to the result. */
  readonly waitedMs: number | undefined;
  /** Ids of the nodes, in the order of the labels. */
  readonly nodes: readonly string[];
}

export interface AttemptLine {
  readonly atMs: number;
  /** `provider/pool` */
  readonly pool: string;
  readonly label: string;
  /** `ready`, or the code of the error. */
  readonly result: string;
  readonly creatingMs: number;
  readonly bootingMs: number;
  readonly loginMs: number;
}

export interface NodeLine {
  readonly kind: 'node';
  readonly id: string;
  readonly labels: readonly string[];
  readonly provider: string | null;
  readonly pool: string | null;
  readonly resources: Resources | undefined;
  /** True if the life of the node had not ended. */
  readonly open: boolean;
  readonly attempts: readonly AttemptLine[];
  readonly usedMs: number | undefined;
  readonly deletingMs: number | undefined;
}

export interface ProviderLine {
  readonly kind: 'provider';
  readonly provider: string;
  readonly limit: Resources;
}

export interface HeaderLine {
  readonly kind: 'journal';
  readonly sinceMs: number;
  readonly untilMs: number;
}

export type DayLine = RequestLine | NodeLine | ProviderLine | HeaderLine;

const VERSION = 1;
const DEFAULT_PRIORITY = 200;
const RESULTS = ['fulfilled', 'failed', 'cancelled'] as const;
const MAX_LABELS = 1000;

/** Returns a line. Throws `FieldError` if it is wrong. `onUnknown` receives the names of unknown keys. */
export function readLine(text: string, onUnknown: (key: string) => void): DayLine {
  const fields = new Fields(objectIn(text));
  const kind = fields.text('kind', 'request');
  const line = READERS[kind]?.(fields);
  if (line === undefined) {
    throw new FieldError(`"kind" must be one of ${Object.keys(READERS).join(', ')}, not ${JSON.stringify(kind)}`);
  }
  for (const key of fields.unread()) onUnknown(key);
  return line;
}

const READERS: Readonly<Partial<Record<string, (fields: Fields) => DayLine>>> = {
  request: readRequest,
  node: readNode,
  provider: (fields) => ({
    kind: 'provider',
    provider: fields.text('provider'),
    limit: fields.amounts('limit') ?? {},
  }),
  journal: (fields) => {
    const version = fields.number('version', 0, Infinity);
    if (version !== VERSION) throw new FieldError(`version ${version} of the journal is not known, only ${VERSION}`);
    const [sinceMs, untilMs] = [fields.time('since'), fields.time('until')];
    if (untilMs < sinceMs) throw new FieldError('"until" is before "since"');
    return { kind: 'journal', sinceMs, untilMs };
  },
};

function readRequest(fields: Fields): RequestLine {
  const labels = fields.has('label') ? [fields.text('label')] : fields.texts('labels');
  if (labels.length === 0 || labels.length > MAX_LABELS) {
    throw new FieldError(`a request has 1 to ${MAX_LABELS} labels, not ${labels.length}`);
  }
  const id = fields.optionalText('id') ?? undefined;
  const result = fields.optionalText('result');
  const known = RESULTS.find((each) => each === result);
  if (result !== null && known === undefined) throw new FieldError(`"result" must be one of ${RESULTS.join(', ')}`);
  return {
    kind: 'request',
    id,
    createdMs: fields.time('created'),
    labels,
    tenant: fields.optionalText('tenant'),
    requestor: fields.optionalText('requestor'),
    priority: fields.wholeNumber('priority', 0, 999) ?? priorityIn(id) ?? DEFAULT_PRIORITY,
    relativePriority: fields.has('relative_priority') ? fields.number('relative_priority', -Infinity, Infinity) : 0,
    heldMs: fields.durations('held', labels.length),
    result: known,
    waitedMs: fields.duration('waited'),
    nodes: fields.has('nodes') ? fields.texts('nodes') : [],
  };
}

/** The id of a request begins with its priority: `200-0000000042`. */
function priorityIn(id: string | undefined): number | undefined {
  const [, priority] = /^(\d{3})-/.exec(id ?? '') ?? [];
  return priority === undefined ? undefined : Number(priority);
}

function readNode(fields: Fields): NodeLine {
  // Only other tools need them.
  for (const key of ['request', 'created']) fields.has(key);
  return {
    kind: 'node',
    id: fields.text('id'),
    labels: fields.texts('labels'),
    provider: fields.optionalText('provider'),
    pool: fields.optionalText('pool'),
    resources: fields.amounts('resources'),
    open: fields.has('open'),
    attempts: fields.objects('attempts').map(readAttempt),
    usedMs: fields.duration('used'),
    deletingMs: fields.duration('deleting'),
  };
}

function readAttempt(fields: Fields): AttemptLine {
  return {
    atMs: fields.time('at'),
    pool: fields.text('pool'),
    label: fields.text('label'),
    result: fields.text('result'),
    creatingMs: fields.duration('creating') ?? 0,
    bootingMs: fields.duration('booting') ?? 0,
    loginMs: fields.duration('login') ?? 0,
  };
}

function objectIn(text: string): JsonObject {
  let value: JsonValue;
  try {
    value = JSON.parse(text) as JsonValue;
  } catch {
    throw new FieldError('it is not JSON');
  }
  if (isJsonObject(value)) return value;
  throw new FieldError('it is not a JSON object');
}
