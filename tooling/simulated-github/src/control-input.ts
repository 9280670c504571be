/** Checks the values that the control interface receives. Each function throws an `Error` with the reason. */

import { isJsonObject, type JsonObject, type JsonValue } from '@nodepool/core';
import type { FaultRule as AnyFaultRule } from '@nodepool/simulated-cloud';
import type { CallFault, FaultRule, MessageFault } from './faults.js';
import type { JobRequest } from './jobs.js';
import { isRunnerBehaviour, RUNNER_BEHAVIOURS } from './runner-behaviour.js';
import { DEFAULT_SETTINGS, type GithubSettings } from './settings.js';
import { problemIn, type Fields } from './strict.js';

const JOB_FIELDS: Fields = {
  repository: 'string',
  labels: 'array',
  'workflow?': 'string',
  'displayName?': 'string',
  'eventName?': 'string',
  'durationMs?': 'integer',
  'conclusion?': 'string',
  'run?': 'string',
  'behaviour?': 'string',
};

const RULE_FIELDS: Fields = { on: 'string', fault: 'object', 'after?': 'integer', 'times?': 'integer' };

const MESSAGE_FAULTS: Readonly<Record<MessageFault['kind'], Fields>> = {
  lost: {},
  repeated: {},
  late: { ms: 'integer' },
};

/** Fields of each fault that JSON can describe. */
const CALL_FAULTS: Readonly<Record<CallFault['kind'], Fields>> = {
  status: {
    status: 'integer',
    'retryAfter?': 'integer',
    'when?': 'string',
    'exception?': 'string',
    'message?': 'string',
  },
  proxy: { status: 'integer', 'json?': 'object', 'echo?': 'boolean' },
  redirect: { status: 'integer', to: 'string' },
  'content-type': { type: 'string' },
  endless: {},
  cut: { when: 'string' },
  hang: { when: 'string' },
  latency: { ms: 'integer' },
  statistics: { statistics: 'object' },
  empty: {},
  runner: { behaviour: 'string' },
};

export function jobRequestIn(body: JsonObject): JobRequest {
  check(body, JOB_FIELDS);
  const { labels, conclusion, behaviour } = body;
  if (!Array.isArray(labels) || labels.length === 0 || !labels.every((label) => typeof label === 'string')) {
    throw new Error('"labels" must be a list of texts');
  }
  if (conclusion !== undefined && conclusion !== 'succeeded' && conclusion !== 'failed') {
    throw new Error('"conclusion" must be "succeeded" or "failed"');
  }
  checkBehaviour(behaviour ?? 'normal');
  return body as unknown as JobRequest;
}

export function settingsIn(body: JsonObject): Partial<GithubSettings> {
  for (const [name, value] of Object.entries(body)) {
    const usual = Object.entries(DEFAULT_SETTINGS).find(([key]) => key === name)?.[1];
    if (usual === undefined) throw new Error(`There is no setting "${name}"`);
    if (typeof value !== typeof usual) throw new Error(`"${name}" must be a ${typeof usual}`);
  }
  const { assignment = 'direct' } = body;
  if (assignment !== 'direct' && assignment !== 'acquire') throw new Error('"assignment" is "direct" or "acquire"');
  return body as Partial<GithubSettings>;
}

export function faultRuleIn(body: JsonObject): FaultRule {
  const rule = ruleIn<CallFault>(body, CALL_FAULTS);
  if (rule.fault.kind === 'runner') checkBehaviour(rule.fault.behaviour);
  return rule;
}

export function messageFaultRuleIn(body: JsonObject): AnyFaultRule<MessageFault> {
  return ruleIn<MessageFault>(body, MESSAGE_FAULTS);
}

function ruleIn<F extends { readonly kind: string }>(
  body: JsonObject,
  kinds: Readonly<Record<F['kind'], Fields>>,
): AnyFaultRule<F> {
  check(body, RULE_FIELDS);
  const { fault } = body;
  const kind = isJsonObject(fault) ? fault['kind'] : undefined;
  const fields = Object.entries<Fields>(kinds).find(([name]) => name === kind)?.[1];
  if (fields === undefined) throw new Error(`The kind of a fault is one of: ${Object.keys(kinds).join(', ')}`);
  check(fault, { kind: 'string', ...fields });
  return body as unknown as AnyFaultRule<F>;
}

function checkBehaviour(behaviour: JsonValue): void {
  if (!isRunnerBehaviour(behaviour)) throw new Error(`"behaviour" is one of: ${RUNNER_BEHAVIOURS.join(', ')}`);
}

function check(value: unknown, fields: Fields): void {
  const problem = problemIn(value, fields);
  if (problem !== undefined) throw new Error(problem);
}
