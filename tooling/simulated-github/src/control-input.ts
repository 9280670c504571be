/** Checks the values that the control interface receives. Each function throws an `Error` with the reason. */

import type { JsonObject } from '@nodepool/core';
import type { FaultRule as AnyFaultRule } from '@nodepool/simulated-cloud';
import type { CallFault, FaultRule, MessageFault } from './faults.js';
import { isRunnerBehaviour, RUNNER_BEHAVIOURS, type RunnerBehaviour } from './runner-behaviour.js';
import { DEFAULT_SETTINGS, type GithubSettings } from './settings.js';
import { checked, type Fields } from './strict.js';
import type { JobRequest } from './records.js';

const JOB_FIELDS = {
  repository: 'string',
  labels: 'array',
  'workflow?': 'string',
  'displayName?': 'string',
  'eventName?': 'string',
  'durationMs?': 'integer',
  'conclusion?': 'string',
  'run?': 'string',
  'behaviour?': 'string',
} as const satisfies Fields;

const RULE_FIELDS = {
  on: 'string',
  fault: 'object',
  'after?': 'integer',
  'times?': 'integer',
} as const satisfies Fields;

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
  const { labels, conclusion = 'succeeded', behaviour = 'normal', ...fields } = checked(body, JOB_FIELDS, errorOf);
  const names = labels.filter((label) => typeof label === 'string');
  if (names.length === 0 || names.length < labels.length) throw new Error('"labels" must be a list of texts');
  if (conclusion !== 'succeeded' && conclusion !== 'failed') {
    throw new Error('"conclusion" must be "succeeded" or "failed"');
  }
  checkBehaviour(behaviour);
  return { ...(fields as Pick<JobRequest, 'repository'>), labels: names, conclusion, behaviour };
}

export function settingsIn(body: JsonObject): Partial<GithubSettings> {
  const defaults = new Map<string, unknown>(Object.entries(DEFAULT_SETTINGS));
  for (const [name, value] of Object.entries(body)) {
    const usual = defaults.get(name);
    if (usual === undefined) throw new Error(`There is no setting "${name}"`);
    if (typeof value !== typeof usual) throw new Error(`"${name}" must be a ${typeof usual}`);
  }
  const { assignment = 'direct' } = body;
  if (assignment !== 'direct' && assignment !== 'acquire') throw new Error('"assignment" is "direct" or "acquire"');
  return body;
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
  const { fault, ...rule } = checked(body, RULE_FIELDS, errorOf);
  const fields = Object.entries<Fields>(kinds).find(([name]) => name === fault['kind'])?.[1];
  if (fields === undefined) throw new Error(`The kind of a fault is one of: ${Object.keys(kinds).join(', ')}`);
  checked(fault, { kind: 'string', ...fields }, errorOf);
  const { on, after = 0, times = 1 } = rule;
  return { on, after, times, fault: fault as unknown as F };
}

function checkBehaviour(behaviour: string): asserts behaviour is RunnerBehaviour {
  if (!isRunnerBehaviour(behaviour)) throw new Error(`"behaviour" is one of: ${RUNNER_BEHAVIOURS.join(', ')}`);
}

function errorOf(problem: string): Error {
  return new Error(problem);
}
