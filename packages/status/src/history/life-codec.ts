/** Lives of requests and nodes as JSON, for the journal. */

import { shortened, type Resources } from '@nodepool/core';
import { isObject } from './history-bucket.js';
import { NODE_PHASES, type Attempt, type Life, type NodePhase, type RequestEnd } from '../timeline/life.js';
import { REFUSAL_CAUSES, type RefusalCause } from '../facts/timeline-recorder.js';
import { NodeLife } from '../timeline/node-life.js';
import { RequestLife } from '../timeline/request-life.js';

const MAX_TEXT = 300;
const PHASES: ReadonlySet<unknown> = new Set(NODE_PHASES);
const RESULTS: ReadonlySet<unknown> = new Set(['fulfilled', 'failed', 'cancelled', 'unseen']);

export function encodeRequest(life: RequestLife): object {
  return { ...life.facts, ...common(life), pool: life.pool, ...life.ended };
}

export function encodeNode(life: NodeLife): object {
  return { ...life.facts, ...common(life) };
}

function common({ created, end, segments, attempts }: RequestLife | NodeLife): object {
  return {
    created,
    end,
    attempts,
    // Offsets make the lines much shorter than absolute times.
    segments: segments.map(({ phase, from, by, detail, failed }) => [
      phase,
      from - created,
      by ?? null,
      detail === undefined ? null : shortened(detail, MAX_TEXT),
      failed ? 1 : 0,
    ]),
  };
}

/** Returns the life of stored JSON; undefined if the JSON is invalid. */
export function decodeRequest(json: unknown): RequestLife | undefined {
  if (!isObject(json) || typeof json['id'] !== 'string' || typeof json['created'] !== 'number') return undefined;
  const { id, labels, requestor, tenant, priority, created, pool, result, cause, reason, nodes } = json;
  const facts = {
    id,
    labels: texts(labels),
    requestor: textOrNull(requestor),
    tenant: textOrNull(tenant),
    priority: typeof priority === 'number' ? priority : 0,
  };
  const life = new RequestLife(facts, created);
  life.pool = text(pool);
  if (!decodeCommon(life, json)) return undefined;
  if (life.end !== undefined) {
    if (!isResult(result)) return undefined;
    life.ended = { result, cause: causeOf(cause), reason: text(reason), nodes: texts(nodes) };
  }
  return life;
}

/** Returns the life of stored JSON; undefined if the JSON is invalid. */
export function decodeNode(json: unknown): NodeLife | undefined {
  if (!isObject(json) || typeof json['id'] !== 'string' || typeof json['created'] !== 'number') return undefined;
  const { id, labels, provider, pool, request, resources, created } = json;
  const facts = {
    id,
    labels: texts(labels),
    provider: textOrNull(provider),
    pool: textOrNull(pool),
    request: textOrNull(request),
    resources: resourcesOrNull(resources),
  };
  const life = new NodeLife(facts, created);
  return decodeCommon(life, json) ? life : undefined;
}

function decodeCommon(life: Life & { attempts: readonly Attempt[] }, json: Readonly<Record<string, unknown>>): boolean {
  const { segments, attempts, end } = json;
  if (!Array.isArray(segments)) return false;
  for (const segment of segments) {
    const [phase, offset, by, detail, failed] = Array.isArray(segment) ? (segment as unknown[]) : [];
    if (!isPhase(phase) || typeof offset !== 'number') return false;
    const from = life.created + offset;
    life.append({ phase, from, by: text(by), detail: text(detail), failed: failed === 1 });
  }
  const decoded = Array.isArray(attempts) ? (attempts as unknown[]).map(decodeAttempt) : [];
  life.attempts = decoded.filter((attempt) => attempt !== undefined);
  if (typeof end === 'number') life.end = end;
  life.skipClosed();
  return true;
}

function decodeAttempt(json: unknown): Attempt | undefined {
  if (!isObject(json)) return undefined;
  const { node, number, pool, label, offer, ended, error } = json;
  if (typeof node !== 'string' || typeof pool !== 'string' || typeof label !== 'string') return undefined;
  if (typeof number !== 'number' || typeof ended !== 'number') return undefined;
  const failure = isObject(error)
    ? { code: text(error['code']) ?? '', message: text(error['message']) ?? '', scope: text(error['scope']) }
    : undefined;
  return { node, number, pool, label, offer: text(offer) ?? '', ended, error: failure };
}

function causeOf(value: unknown): RefusalCause | undefined {
  return REFUSAL_CAUSES.find((cause) => cause === value);
}

function isPhase(value: unknown): value is NodePhase {
  return PHASES.has(value);
}

function isResult(value: unknown): value is RequestEnd['result'] {
  return RESULTS.has(value);
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function textOrNull(value: unknown): string | null {
  return text(value) ?? null;
}

function resourcesOrNull(value: unknown): Resources | null {
  if (!isObject(value)) return null;
  const amounts = Object.entries(value).filter((entry): entry is [string, number] => typeof entry[1] === 'number');
  return Object.fromEntries(amounts);
}

function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : [];
}
