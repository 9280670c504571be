/** The schema of `ready`. */

import type { JsonObject } from '@nodepool/core';
import { INNER_PERCENT_PATTERN, PERCENT_PATTERN } from '../schema-words.js';
import { DEFAULT_SERVED_AT_ONCE } from './settings.js';

const min: JsonObject = { type: 'integer', minimum: 0, description: 'Fewest ready nodes.' };
const max: JsonObject = {
  type: ['integer', 'null'],
  minimum: 0,
  description: 'Most ready nodes, even if `min-ready` is larger. Default: no limit.',
};
const spare: JsonObject = {
  type: ['integer', 'string'],
  minimum: 0,
  pattern: PERCENT_PATTERN,
  description:
    'Ready nodes by use: a number, which is added to the nodes in use, or a percentage of them, e.g. `20%`, rounded up.',
};

const entry: JsonObject = {
  type: 'object',
  properties: {
    cron: {
      type: 'string',
      minLength: 1,
      description: 'When the entry begins: minute, hour, day of month, month, day of week.',
    },
    until: {
      type: 'string',
      minLength: 1,
      description: 'When it ends. Default: when any entry begins.',
    },
    timezone: {
      type: 'string',
      minLength: 1,
      default: 'UTC',
      description: 'Time zone of both, e.g. `Europe/Berlin`, with daylight saving time.',
    },
    min: { ...min, description: '`ready.min` at these times.' },
    max: { ...max, description: '`ready.max` at these times.' },
    spare: { ...spare, description: '`ready.spare` at these times.' },
  },
  required: ['cron'],
  anyOf: [{ required: ['min'] }, { required: ['max'] }, { required: ['spare'] }],
  additionalProperties: false,
  description: 'Values for a time of day or week. The last one of the entries that apply decides.',
};

const forecast: JsonObject = {
  type: ['boolean', 'object', 'null'],
  properties: {
    'served-at-once': {
      type: 'string',
      pattern: INNER_PERCENT_PATTERN,
      default: `${DEFAULT_SERVED_AT_ONCE * 100}%`,
      description: 'Part of the nodes that are ready when requested.',
    },
    'cost-per-idle-hour': {
      type: 'number',
      exclusiveMinimum: 0,
      description: 'Cost of an idle node per hour, in any currency.',
    },
    'max-idle-cost': {
      type: 'number',
      minimum: 0,
      description: 'Maximum cost per hour of the nodes that the forecast keeps ready. Requires `cost-per-idle-hour`.',
    },
  },
  additionalProperties: false,
  description:
    'Ready nodes for the demand that the history predicts per quarter of an hour. `true`: with the defaults.',
};

export const readySchema: JsonObject = {
  type: ['object', 'null'],
  compatible: false,
  properties: {
    min: { ...min, default: 0 },
    max,
    spare,
    schedule: {
      type: ['array', 'null'],
      items: entry,
      description: 'Values for times of day or week. The last entry that applies decides.',
    },
    forecast,
  },
  additionalProperties: false,
  description:
    'Nodes to keep ready, if not constant: the most of `min-ready`, `min`, `spare` and `forecast`, at most `max`.',
};
