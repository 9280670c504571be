/** `fair-shares`: the weights of tenants and projects, for the division of scarce capacity. */

import { entriesAt, numberAt, objectAt, stringAt, type JsonObject } from '@nodepool/core';

export interface FairShares {
  /** Time after which a past use counts half, milliseconds. */
  readonly halfLifeMs: number;
  /** Weight of the tenants that are not in `tenants`. */
  readonly defaultShare: number;
  readonly tenants: ReadonlyMap<string, TenantShare>;
}

interface TenantShare {
  readonly share: number;
  /** Weights of the tenant's projects by name; other projects have the weight 1. */
  readonly projects: ReadonlyMap<string, number>;
}

/** Default of `half-life`, seconds. */
const DEFAULT_HALF_LIFE_SECONDS = 600;
const DEFAULT_SHARE = 1;

const name: JsonObject = { type: 'string', minLength: 1 };
const share: JsonObject = { type: 'number', exclusiveMinimum: 0, default: DEFAULT_SHARE };

const projectShare: JsonObject = {
  type: 'object',
  properties: {
    'project-name': { ...name, description: 'Name in `requestor_data`.' },
    share: { ...share, description: 'Weight among the projects of the tenant.' },
  },
  required: ['project-name', 'share'],
  additionalProperties: false,
  description: 'The weight of a project.',
};

const tenantShare: JsonObject = {
  type: 'object',
  properties: {
    'tenant-name': { ...name, description: 'Name in Zuul.' },
    share: { ...share, description: 'Weight; twice the weight gets twice as much.' },
    projects: {
      type: ['array', 'null'],
      items: projectShare,
      description: 'Weights of projects; unlisted ones have 1.',
    },
  },
  required: ['tenant-name'],
  additionalProperties: false,
  description: 'The weight of a tenant.',
};

export const fairSharesSchema: JsonObject = {
  type: ['object', 'null'],
  compatible: false,
  properties: {
    'half-life': {
      type: 'number',
      exclusiveMinimum: 0,
      default: DEFAULT_HALF_LIFE_SECONDS,
      description: 'Seconds after which past use counts half.',
    },
    'default-share': { ...share, description: 'Weight of unlisted tenants.' },
    tenants: { type: ['array', 'null'], items: tenantShare, description: 'Weights of tenants.' },
  },
  additionalProperties: false,
  description: 'Scarce capacity is divided among tenants by weight. Without it, only priorities count.',
};

/** Returns undefined without the key, or if it has no value. An empty mapping stands for equal weights. */
export function loadFairShares(root: JsonObject): FairShares | undefined {
  const section = objectAt(root, 'fair-shares');
  if (section === undefined) return undefined;
  const tenants = entriesAt(section, 'tenants').map(({ section: tenant }) => {
    const projects = entriesAt(tenant, 'projects').map(
      ({ section: project }) =>
        [stringAt(project, 'project-name') ?? '', numberAt(project, 'share') ?? DEFAULT_SHARE] as const,
    );
    const weights = { share: numberAt(tenant, 'share') ?? DEFAULT_SHARE, projects: new Map(projects) };
    return [stringAt(tenant, 'tenant-name') ?? '', weights] as const;
  });
  return {
    halfLifeMs: (numberAt(section, 'half-life') ?? DEFAULT_HALF_LIFE_SECONDS) * 1000,
    defaultShare: numberAt(section, 'default-share') ?? DEFAULT_SHARE,
    tenants: new Map(tenants),
  };
}
