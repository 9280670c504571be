/** nova without servers: flavors, limits, quotas, zones, key pairs. */

import type { OpenStackState } from '../cloud-state.js';
import { createHash } from 'node:crypto';
import type { Answer } from '@nodepool/simulated-cloud';
import {
  bodyOf,
  json,
  memberOf,
  textOf,
  type OpenStackRequest,
  type OwnedRequest,
  type Route,
} from '../http/request-context.js';
import { pageOf } from '../http/page.js';
import { fits } from '../quotas.js';
import { ZONE } from '../settings.js';
import { computeError, malformed } from './errors.js';
import { microversionOf } from './microversion.js';
import type { Flavor, KeyPair } from './records.js';
import type { ServerStore } from './servers.js';
import { flavorView, linksOf } from './views.js';

export interface ComputeCatalogue {
  readonly flavors: readonly Flavor[];
  /** The current key pairs. */
  readonly keyPairs: KeyPair[];
}

/** Limits of nova besides the quota, some of them only reported before microversion 2.36 or 2.57. */
const FIXED_LIMITS = { maxServerMeta: 128, maxServerGroups: 10, maxServerGroupMembers: 10 } as const;
const LIMITS_BEFORE_2_36 = { maxTotalFloatingIps: -1, maxSecurityGroups: -1, maxSecurityGroupRules: -1 } as const;
const USE_BEFORE_2_36 = { totalFloatingIpsUsed: 0, totalSecurityGroupsUsed: 0 } as const;
const LIMITS_BEFORE_2_57 = { maxImageMeta: 128, maxPersonality: 5, maxPersonalitySize: 10_240 } as const;

export function catalogueRoutes(catalogue: ComputeCatalogue, state: OpenStackState, servers: ServerStore): Route[] {
  return [
    ...flavorRoutes(catalogue.flavors, state),
    ...keyPairRoutes(catalogue.keyPairs, state),
    {
      method: 'GET',
      path: '/v2.1/limits',
      operation: 'limits.show',
      handle: (request) => limits(request, state, servers),
    },
    {
      method: 'GET',
      path: '/v2.1/os-quota-sets/:project',
      operation: 'quotas.show',
      handle: (request) => quotaSet(request, state, servers, false),
    },
    {
      method: 'GET',
      path: '/v2.1/os-quota-sets/:project/detail',
      operation: 'quotas.details',
      handle: (request) => quotaSet(request, state, servers, true),
    },
    {
      method: 'GET',
      path: '/v2.1/os-availability-zone',
      operation: 'zones.list',
      handle: () => zones(null),
    },
    {
      method: 'GET',
      path: '/v2.1/os-availability-zone/detail',
      operation: 'zones.list-detail',
      handle: ({ caller }) => {
        if (caller.admin) return zones({});
        throw computeError(403, "Policy doesn't allow os_compute_api:os-availability-zone:detail to be performed.");
      },
    },
  ];
}

function zones(hosts: object | null): Answer {
  return json(200, { availabilityZoneInfo: [{ zoneName: ZONE, zoneState: { available: true }, hosts }] });
}

function flavorRoutes(flavors: readonly Flavor[], state: OpenStackState): Route[] {
  const minor = ({ headers }: OpenStackRequest): number => microversionOf(headers, state.settings.microversion);
  const wanted = ({ params }: OpenStackRequest): Flavor => {
    const flavor = flavors.find(({ id }) => id === params['id']);
    if (flavor === undefined) throw computeError(404, `Flavor ${params['id'] ?? ''} could not be found.`);
    return flavor;
  };
  const list = (request: OwnedRequest, detailed: boolean): Answer => {
    const { query, serviceUrl, path } = request;
    const { pageLimit } = state.settings;
    const minimum = { ram: Number(query.get('minRam') ?? 0), disk: Number(query.get('minDisk') ?? 0) };
    const byRam = query.get('sort_key') === 'memory_mb';
    const sorted = flavors
      .filter(({ ram, disk }) => ram >= minimum.ram && disk >= minimum.disk)
      .sort((a, b) => (byRam ? a.ram - b.ram : 0) || (a.id < b.id ? -1 : 1));
    const page = pageOf(sorted, request, {
      defaultLimit: pageLimit,
      maxLimit: pageLimit,
      unknownMarker: (marker) => computeError(400, `marker [${marker}] not found`),
    });
    const brief = ({ id, name }: Flavor): object => ({ id, name, links: linksOf('flavors', id, serviceUrl) });
    const href = `${serviceUrl}${path}?${page.next ?? ''}`;
    return json(200, {
      flavors: page.items.map((flavor) => (detailed ? flavorView(flavor, serviceUrl, minor(request)) : brief(flavor))),
      ...(page.next === undefined ? {} : { flavors_links: [{ rel: 'next', href }] }),
    });
  };
  return [
    { method: 'GET', path: '/v2.1/flavors', operation: 'flavors.list', handle: (request) => list(request, false) },
    {
      method: 'GET',
      path: '/v2.1/flavors/detail',
      operation: 'flavors.list-detail',
      handle: (request) => list(request, true),
    },
    {
      method: 'GET',
      path: '/v2.1/flavors/:id',
      operation: 'flavors.show',
      handle: (request) => json(200, { flavor: flavorView(wanted(request), request.serviceUrl, minor(request)) }),
    },
    {
      method: 'GET',
      path: '/v2.1/flavors/:id/os-extra_specs',
      operation: 'flavors.extra-specs',
      handle: (request) => {
        wanted(request);
        return json(200, { extra_specs: {} });
      },
    },
  ];
}

function limits({ caller, headers }: OwnedRequest, state: OpenStackState, servers: ServerStore): Answer {
  const minor = microversionOf(headers, state.settings.microversion);
  const quota = state.quotas.reported(caller.projectName);
  const used = servers.used(caller.projectId);
  const absolute = {
    maxTotalInstances: quota.instances,
    maxTotalCores: quota.cores,
    maxTotalRAMSize: quota.ram,
    maxTotalKeypairs: quota.key_pairs,
    ...FIXED_LIMITS,
    ...(minor < 57 ? LIMITS_BEFORE_2_57 : {}),
    ...(minor < 36 ? LIMITS_BEFORE_2_36 : {}),
    totalRAMUsed: used.ram,
    totalCoresUsed: used.cores,
    totalInstancesUsed: used.instances,
    totalServerGroupsUsed: 0,
    ...(minor < 36 ? USE_BEFORE_2_36 : {}),
  };
  return json(200, { limits: { rate: [], absolute } });
}

function quotaSet(
  { caller, params }: OwnedRequest,
  state: OpenStackState,
  servers: ServerStore,
  detailed: boolean,
): Answer {
  if (params['project'] !== caller.projectId && !caller.admin) {
    throw computeError(403, "Policy doesn't allow os_compute_api:os-quota-sets:show to be performed.");
  }
  const { cores, instances, ram, key_pairs } = state.quotas.reported(caller.projectName);
  const used = { ...servers.used(caller.projectId), key_pairs: 0 };
  const entries = Object.entries({ cores, instances, ram, key_pairs }).map(([name, limit]): [string, unknown] => [
    name,
    detailed ? { limit, in_use: used[name as keyof typeof used], reserved: 0 } : limit,
  ]);
  return json(200, { quota_set: { id: params['project'], ...Object.fromEntries(entries) } });
}

function keyPairRoutes(keyPairs: KeyPair[], state: OpenStackState): Route[] {
  const indexOf = ({ params, caller }: OwnedRequest): number => {
    const name = params['name'] ?? '';
    const index = keyPairs.findIndex((pair) => pair.name === name && pair.userId === caller.userId);
    if (index < 0) throw computeError(404, `Keypair ${name} not found for user ${caller.userId}`);
    return index;
  };
  const view = ({ name, publicKey, fingerprint, userId }: KeyPair): object => ({
    name,
    public_key: publicKey,
    fingerprint,
    user_id: userId,
  });
  const create = (request: OwnedRequest): Answer => {
    const { userId, projectName } = request.caller;
    const spec = memberOf(bodyOf(request, malformed), 'keypair', malformed);
    const name = textOf(spec['name'], '');
    const own = keyPairs.filter((pair) => pair.userId === userId);
    if (own.some((pair) => pair.name === name)) throw computeError(409, `Key pair '${name}' already exists.`);
    if (!fits(state.quotas.enforced(projectName).key_pairs, own.length, 1)) {
      throw computeError(403, 'Quota exceeded, too many key pairs.');
    }
    const publicKey = textOf(
      spec['public_key'],
      `ssh-rsa ${Buffer.from(name.padEnd(66)).toString('base64')} Generated-by-Nova`,
    );
    const pair = { name, publicKey, fingerprint: fingerprintOf(publicKey), userId };
    keyPairs.push(pair);
    return json(200, { keypair: view(pair) });
  };
  return [
    {
      method: 'GET',
      path: '/v2.1/os-keypairs',
      operation: 'key-pairs.list',
      handle: ({ caller }) =>
        json(200, {
          keypairs: keyPairs.filter(({ userId }) => userId === caller.userId).map((pair) => ({ keypair: view(pair) })),
        }),
    },
    { method: 'POST', path: '/v2.1/os-keypairs', operation: 'key-pairs.create', handle: create },
    {
      method: 'GET',
      path: '/v2.1/os-keypairs/:name',
      operation: 'key-pairs.show',
      handle: (request) => json(200, { keypair: keyPairs.slice(indexOf(request)).slice(0, 1).map(view)[0] }),
    },
    {
      method: 'DELETE',
      path: '/v2.1/os-keypairs/:name',
      operation: 'key-pairs.delete',
      handle: (request) => {
        keyPairs.splice(indexOf(request), 1);
        return { status: 202, type: 'application/json' };
      },
    },
  ];
}

/** Returns the key's MD5 in nova's format. Refuses an invalid key. */
function fingerprintOf(publicKey: string): string {
  const data = Buffer.from(publicKey.split(/\s+/)[1] ?? '', 'base64');
  if (data.length < 32) throw computeError(400, 'Keypair data is invalid: failed to generate fingerprint');
  const hex = createHash('md5').update(data).digest('hex');
  return hex.match(/../g)?.join(':') ?? '';
}
