/** The schema of `ready`. */

import type { JsonObject } from '@nodepool/core';
import { INNER_PERCENT_PATTERN, PERCENT_PATTERN } from '../schema-words.js';
import { DEFAULT_SERVED_AT_ONCE } from './settings.js';

const min: JsonObject = { type: 'integer', minimum: 0, description: 'Fewest ready nodes.' };
const max: JsonObject = {
  type: ['integer', 'null'],
  minimum: 0,
  description: 'Most ready nodes, whatever the other keys and `min-ready` ask for. Default: no limit.',
};
const spare: JsonObject = {
  type: ['integer', 'string'],
  minimum: 0,
  pattern: PERCENT_PATTERN,
  description:
    'Ready nodes that follow use. A number: so many more ready nodes than nodes in use. A percentage, e.g. `20%`: that part of the nodes in use, rounded up.',
};

const entry: JsonObject = {
  type: 'object',
  properties: {
    cron: {
      type: 'string',
      minLength: 1,
      description: 'Times at which the entry begins to apply: minute, hour, day of month, month, day of week.',
    },
    until: {
      type: 'string',
      minLength: 1,
      description: 'Times at which it ends to apply. Default: when an entry of the schedule begins to apply.',
    },
    timezone: {
      type: 'string',
      minLength: 1,
      default: 'UTC',
      description: 'Time zone of both patterns, e.g. `Europe/Berlin`; its daylight saving time counts.',
    },
    min,
    max,
    spare,
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
      description: 'Part of the requested nodes that are ready when they are requested.',
    },
    'cost-per-idle-hour': {
      type: 'number',
      exclusiveMinimum: 0,
      description: 'Cost of one idle node per hour, in any currency.',
    },
    'max-idle-cost': {
      type: 'number',
      minimum: 0,
      description:
        'Most that the nodes which the forecast keeps ready may cost per hour, in the same currency. Requires `cost-per-idle-hour`.',
    },
  },
  additionalProperties: false,
  description:
    'Ready nodes for the demand that the history of the label lets expect in each quarter of an hour. `true`: with the defaults.',
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
      description: 'Values of `min`, `max` and `spare` for times of day or week.',
    },
    forecast,
  },
  additionalProperties: false,
  description:
    'Number of nodes to keep ready, if it is not constant. The label has the largest number that `min-ready`, `min`, `spare` and `forecast` ask for, at most `max`.',
};
