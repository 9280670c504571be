/** neutron: quotas and their use. */

import type { Answer } from '@nodepool/simulated-cloud';
import type { OpenStackState } from '../cloud-state.js';
import { json, type OwnedRequest, type Route } from '../http/request-context.js';
import { fits } from '../quotas.js';
import type { Quota } from '../settings.js';
import { networkError, overQuota } from './errors.js';
import type { NetworkStore } from './networks.js';
import type { Standard } from './records.js';

type QuotaName = keyof Quota & ('network' | 'port' | 'floatingip' | 'security_group');

export class NetworkQuotas {
  constructor(
    private readonly store: NetworkStore,
    private readonly state: OpenStackState,
  ) {}

  routes(): Route[] {
    const show = ({ caller, params }: OwnedRequest, detailed: boolean): Answer => {
      if (params['project'] !== caller.projectId && !caller.admin) {
        throw networkError(403, 'PolicyNotAuthorized', 'rule:get_quota is disallowed by policy');
      }
      const { network, port, floatingip, security_group } = this.state.quotas.reported(caller.projectName);
      const limits = { network, subnet: network, port, router: network, floatingip, security_group };
      const used = (name: string): number => this.used(name, caller.projectId);
      const entries = Object.entries(limits).map(([name, limit]): [string, unknown] => [
        name,
        detailed ? { limit, used: used(name), reserved: 0 } : limit,
      ]);
      return json(200, { quota: Object.fromEntries(entries) });
    };
    const details = (request: OwnedRequest): Answer => show(request, true);
    return [
      {
        method: 'GET',
        path: '/v2.0/availability_zones',
        operation: 'zones.list',
        handle: () => json(200, { availability_zones: [] }),
      },
      {
        method: 'GET',
        path: '/v2.0/quotas/:project',
        operation: 'quotas.show',
        handle: (request) => show(request, false),
      },
      { method: 'GET', path: '/v2.0/quotas/:project/details', operation: 'quotas.details', handle: details },
      { method: 'GET', path: '/v2.0/quotas/:project/details.json', operation: 'quotas.details', handle: details },
    ];
  }

  /** Throws if one more would exceed the limit of the caller's project. */
  check(name: QuotaName, { caller }: OwnedRequest): void {
    const limit = this.state.quotas.enforced(caller.projectName)[name];
    if (!fits(limit, this.used(name, caller.projectId), 1)) throw overQuota(name);
  }

  private used(name: string, projectId: string): number {
    const { networks, subnets, ports, floatingIps, routers, securityGroups } = this.store;
    const tables: Readonly<Record<string, Iterable<Standard>>> = {
      network: networks.all(),
      subnet: subnets.all(),
      port: ports.all(),
      floatingip: floatingIps.all(),
      router: routers.all(),
      security_group: securityGroups.all(),
    };
    const table = tables[name];
    return [...(table ?? [])].filter(({ project }) => project === projectId).length;
  }
}
