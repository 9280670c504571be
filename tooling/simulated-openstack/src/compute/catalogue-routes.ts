/** What nova offers besides servers: flavors, limits, quotas, zones, key pairs. */

import type { Ground } from '../ground.js';
import { createHash } from 'node:crypto';
import {
  bodyOf,
  json,
  memberOf,
  textOf,
  type Answer,
  type Exchange,
  type OwnedExchange,
  type Route,
} from '../http/exchange.js';
import { pageOf } from '../http/page.js';
import { fits } from '../quotas.js';
import { ZONE } from '../settings.js';
import { computeRefusal, malformed } from './errors.js';
import { microversionOf } from './microversion.js';
import type { Flavor, KeyPair } from './records.js';
import type { ServerStore } from './servers.js';
import { flavorView, linksOf } from './views.js';

export interface ComputeCatalogue {
  readonly flavors: readonly Flavor[];
  /** Grows and shrinks. */
  readonly keyPairs: KeyPair[];
}

/** Limits that nova has beside the quota; the later ones are said before 2.36 or 2.57 only. */
const FIXED_LIMITS = { maxServerMeta: 128, maxServerGroups: 10, maxServerGroupMembers: 10 } as const;
const OLD_LIMITS = { maxTotalFloatingIps: -1, maxSecurityGroups: -1, maxSecurityGroupRules: -1 } as const;
const OLD_USE = { totalFloatingIpsUsed: 0, totalSecurityGroupsUsed: 0 } as const;
const OLDER_LIMITS = { maxImageMeta: 128, maxPersonality: 5, maxPersonalitySize: 10_240 } as const;

export function catalogueRoutes(catalogue: ComputeCatalogue, ground: Ground, servers: ServerStore): Route[] {
  return [
    ...flavorRoutes(catalogue.flavors, ground),
    ...keyPairRoutes(catalogue.keyPairs, ground),
    {
      method: 'GET',
      path: '/v2.1/limits',
      operation: 'limits.show',
      handle: (exchange) => limits(exchange, ground, servers),
    },
    {
      method: 'GET',
      path: '/v2.1/os-quota-sets/:project',
      operation: 'quotas.show',
      handle: (exchange) => quotaSet(exchange, ground, servers, false),
    },
    {
      method: 'GET',
      path: '/v2.1/os-quota-sets/:project/detail',
      operation: 'quotas.details',
      handle: (exchange) => quotaSet(exchange, ground, servers, true),
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
        throw computeRefusal(403, "Policy doesn't allow os_compute_api:os-availability-zone:detail to be performed.");
      },
    },
  ];
}

function zones(hosts: object | null): Answer {
  return json(200, { availabilityZoneInfo: [{ zoneName: ZONE, zoneState: { available: true }, hosts }] });
}

function flavorRoutes(flavors: readonly Flavor[], ground: Ground): Route[] {
  const minor = ({ headers }: Exchange): number => microversionOf(headers, ground.settings().microversion);
  const wanted = ({ params }: Exchange): Flavor => {
    const flavor = flavors.find(({ id }) => id === params['id']);
    if (flavor === undefined) throw computeRefusal(404, `Flavor ${params['id'] ?? ''} could not be found.`);
    return flavor;
  };
  const list = (exchange: OwnedExchange, detailed: boolean): Answer => {
    const { query, serviceUrl, path } = exchange;
    const { pageLimit } = ground.settings();
    const least = { ram: Number(query.get('minRam') ?? 0), disk: Number(query.get('minDisk') ?? 0) };
    const byRam = query.get('sort_key') === 'memory_mb';
    const sorted = flavors
      .filter(({ ram, disk }) => ram >= least.ram && disk >= least.disk)
      .sort((a, b) => (byRam ? a.ram - b.ram : 0) || (a.id < b.id ? -1 : 1));
    const page = pageOf(sorted, exchange, {
      defaultLimit: pageLimit,
      maxLimit: pageLimit,
      unknownMarker: (marker) => computeRefusal(400, `marker [${marker}] not found`),
    });
    const brief = ({ id, name }: Flavor): object => ({ id, name, links: linksOf('flavors', id, serviceUrl) });
    const href = `${serviceUrl}${path}?${page.next ?? ''}`;
    return json(200, {
      flavors: page.items.map((flavor) => (detailed ? flavorView(flavor, serviceUrl, minor(exchange)) : brief(flavor))),
      ...(page.next === undefined ? {} : { flavors_links: [{ rel: 'next', href }] }),
    });
  };
  return [
    { method: 'GET', path: '/v2.1/flavors', operation: 'flavors.list', handle: (exchange) => list(exchange, false) },
    {
      method: 'GET',
      path: '/v2.1/flavors/detail',
      operation: 'flavors.list-detail',
      handle: (exchange) => list(exchange, true),
    },
    {
      method: 'GET',
      path: '/v2.1/flavors/:id',
      operation: 'flavors.show',
      handle: (exchange) => json(200, { flavor: flavorView(wanted(exchange), exchange.serviceUrl, minor(exchange)) }),
    },
    {
      method: 'GET',
      path: '/v2.1/flavors/:id/os-extra_specs',
      operation: 'flavors.extra-specs',
      handle: (exchange) => {
        wanted(exchange);
        return json(200, { extra_specs: {} });
      },
    },
  ];
}

function limits({ caller, headers }: OwnedExchange, ground: Ground, servers: ServerStore): Answer {
  const minor = microversionOf(headers, ground.settings().microversion);
  const quota = ground.quotas.reported(caller.projectName);
  const used = servers.used(caller.projectId);
  const absolute = {
    maxTotalInstances: quota.instances,
    maxTotalCores: quota.cores,
    maxTotalRAMSize: quota.ram,
    maxTotalKeypairs: quota.key_pairs,
    ...FIXED_LIMITS,
    ...(minor < 57 ? OLDER_LIMITS : {}),
    ...(minor < 36 ? OLD_LIMITS : {}),
    totalRAMUsed: used.ram,
    totalCoresUsed: used.cores,
    totalInstancesUsed: used.instances,
    totalServerGroupsUsed: 0,
    ...(minor < 36 ? OLD_USE : {}),
  };
  return json(200, { limits: { rate: [], absolute } });
}

function quotaSet({ caller, params }: OwnedExchange, ground: Ground, servers: ServerStore, detailed: boolean): Answer {
  if (params['project'] !== caller.projectId && !caller.admin) {
    throw computeRefusal(403, "Policy doesn't allow os_compute_api:os-quota-sets:show to be performed.");
  }
  const { cores, instances, ram, key_pairs } = ground.quotas.reported(caller.projectName);
  const used = { ...servers.used(caller.projectId), key_pairs: 0 };
  const entries = Object.entries({ cores, instances, ram, key_pairs }).map(([name, limit]): [string, unknown] => [
    name,
    detailed ? { limit, in_use: used[name as keyof typeof used], reserved: 0 } : limit,
  ]);
  return json(200, { quota_set: { id: params['project'], ...Object.fromEntries(entries) } });
}

function keyPairRoutes(keyPairs: KeyPair[], ground: Ground): Route[] {
  const indexOf = ({ params, caller }: OwnedExchange): number => {
    const name = params['name'] ?? '';
    const index = keyPairs.findIndex((pair) => pair.name === name && pair.userId === caller.userId);
    if (index < 0) throw computeRefusal(404, `Keypair ${name} not found for user ${caller.userId}`);
    return index;
  };
  const view = ({ name, publicKey, fingerprint, userId }: KeyPair): object => ({
    name,
    public_key: publicKey,
    fingerprint,
    user_id: userId,
  });
  const create = (exchange: OwnedExchange): Answer => {
    const { userId, projectName } = exchange.caller;
    const spec = memberOf(bodyOf(exchange, malformed), 'keypair', malformed);
    const name = textOf(spec['name'], '');
    const own = keyPairs.filter((pair) => pair.userId === userId);
    if (own.some((pair) => pair.name === name)) throw computeRefusal(409, `Key pair '${name}' already exists.`);
    if (!fits(ground.quotas.enforced(projectName).key_pairs, own.length, 1)) {
      throw computeRefusal(403, 'Quota exceeded, too many key pairs.');
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
      handle: (exchange) => json(200, { keypair: keyPairs.slice(indexOf(exchange)).slice(0, 1).map(view)[0] }),
    },
    {
      method: 'DELETE',
      path: '/v2.1/os-keypairs/:name',
      operation: 'key-pairs.delete',
      handle: (exchange) => {
        keyPairs.splice(indexOf(exchange), 1);
        return { status: 202, type: 'application/json' };
      },
    },
  ];
}

/** MD5 of the key, as nova writes it. Refuses what is no key. */
function fingerprintOf(publicKey: string): string {
  const data = Buffer.from(publicKey.split(/\s+/)[1] ?? '', 'base64');
  if (data.length < 32) throw computeRefusal(400, 'Keypair data is invalid: failed to generate fingerprint');
  const hex = createHash('md5').update(data).digest('hex');
  return hex.match(/../g)?.join(':') ?? '';
}
