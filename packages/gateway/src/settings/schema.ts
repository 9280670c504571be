/** The schemas of the settings (`gateway.yaml`) and of the token file. */

import type { JsonSchema } from '@nodepool/core';

/** Longest lifetime of a lease without renewal: 30 days, in seconds. */
export const MAX_LIFETIME_S = 2_592_000;

const NAME = { type: 'string', minLength: 1, maxLength: 100 } as const;
const SECONDS = { type: 'integer', minimum: 10, maximum: MAX_LIFETIME_S } as const;
const PRIORITY = { type: 'integer', minimum: 0, maximum: 999 } as const;

/** The rights of a token or of the holders of OpenID Connect tokens. */
const GRANT = {
  tenant: NAME,
  labels: { type: 'array', minItems: 1, items: NAME },
  priorities: {
    type: 'object',
    additionalProperties: false,
    properties: { min: PRIORITY, max: PRIORITY, default: PRIORITY },
  },
  'max-nodes': { type: 'integer', minimum: 0 },
  'max-lifetime': SECONDS,
} as const;

const CLAIM = { type: ['string', 'boolean', 'integer'] } as const;

const ISSUER: JsonSchema = {
  type: 'object',
  required: ['name', 'issuer', 'audience', 'grants'],
  additionalProperties: false,
  properties: {
    name: NAME,
    issuer: { type: 'string', minLength: 1 },
    audience: { type: 'string', minLength: 1 },
    'jwks-uri': { type: 'string', minLength: 1 },
    grants: {
      type: 'array',
      minItems: 1,
      items: {
        type: 'object',
        required: ['name', 'claims', 'tenant', 'labels'],
        additionalProperties: false,
        properties: {
          name: NAME,
          claims: {
            type: 'object',
            minProperties: 1,
            additionalProperties: { anyOf: [CLAIM, { type: 'array', minItems: 1, items: CLAIM }] },
          },
          ...GRANT,
        },
      },
    },
  },
};

export const SETTINGS_SCHEMA: JsonSchema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    listen: {
      type: 'object',
      additionalProperties: false,
      properties: {
        address: { type: 'string', minLength: 1 },
        port: { type: 'integer', minimum: 0, maximum: 65_535 },
      },
    },
    tls: {
      type: 'object',
      required: ['cert', 'key'],
      additionalProperties: false,
      properties: { cert: { type: 'string', minLength: 1 }, key: { type: 'string', minLength: 1 } },
    },
    tokens: { type: 'string', minLength: 1 },
    issuers: { type: 'array', items: ISSUER },
    'default-lifetime': SECONDS,
    'max-lifetime': SECONDS,
    retention: { type: 'integer', minimum: 60 },
    limits: {
      type: 'object',
      additionalProperties: false,
      properties: {
        'requests-per-second': { type: 'number', exclusiveMinimum: 0 },
        burst: { type: 'integer', minimum: 1 },
        streams: { type: 'integer', minimum: 0 },
        'streams-per-token': { type: 'integer', minimum: 0 },
        'body-bytes': { type: 'integer', minimum: 1024, maximum: 1_000_000 },
        connections: { type: 'integer', minimum: 1 },
      },
    },
  },
};

export const TOKENS_SCHEMA: JsonSchema = {
  type: 'object',
  required: ['tokens'],
  additionalProperties: false,
  properties: {
    tokens: {
      type: 'array',
      items: {
        type: 'object',
        required: ['name', 'sha256', 'labels'],
        additionalProperties: false,
        properties: { name: NAME, sha256: { type: 'string', pattern: '^[0-9a-f]{64}$' }, ...GRANT },
      },
    },
  },
};
