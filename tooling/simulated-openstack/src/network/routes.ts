/** neutron: network v2.0. */

import type { JsonObject } from '@nodepool/core';
import type { Ground } from '../ground.js';
import {
  bodyOf,
  json,
  memberOf,
  textOf,
  type Answer,
  type OwnedExchange,
  type Route,
  type Service,
} from '../http/exchange.js';
import { tokenRefused } from '../identity/routes.js';
import { fits } from '../quotas.js';
import type { Quota } from '../settings.js';
import { CollectionRoutes, malformed, type Collection } from './collections.js';
import { networkFailure, networkRefusal, overQuota } from './errors.js';
import type { AssociationProblem, NetworkStore } from './networks.js';
import type {
  FloatingIpRecord,
  NetworkRecord,
  PortRecord,
  RouterRecord,
  SecurityGroupRecord,
  Standard,
  SubnetRecord,
} from './records.js';
import { Views } from './views.js';

/** Those that callers ask for. */
const EXTENSIONS = [
  'external-net',
  'fip-port-details',
  'pagination',
  'quotas',
  'quota_details',
  'router',
  'security-group',
  'sorting',
  'standard-attr-description',
  'standard-attr-tag',
  'standard-attr-timestamp',
];

type QuotaName = keyof Quota & ('network' | 'port' | 'floatingip' | 'security_group');

const notFound =
  (type: string, what: string, end = '.') =>
  (id: string) =>
    [type, `${what} ${id} could not be found${end}`] as const;

export function networkService(store: NetworkStore, ground: Ground, authUrl: () => string): Service {
  const service = new NetworkRoutes(store, ground);
  return {
    name: 'network',
    unauthorized: () => tokenRefused(authUrl()),
    failure: (status, message, headers) => networkFailure(status, typeOfFailure(status), message, headers),
    noRoute: (known) =>
      known
        ? networkFailure(405, 'HTTPMethodNotAllowed', 'The method is not allowed for this resource.')
        : networkFailure(404, 'HTTPNotFound', 'The resource could not be found.'),
    routes: service.routes(),
  };
}

class NetworkRoutes {
  private readonly networks: CollectionRoutes<NetworkRecord>;
  private readonly subnets: CollectionRoutes<SubnetRecord>;
  private readonly ports: CollectionRoutes<PortRecord>;
  private readonly floatingIps: CollectionRoutes<FloatingIpRecord>;
  private readonly routers: CollectionRoutes<RouterRecord>;
  private readonly groups: CollectionRoutes<SecurityGroupRecord>;

  constructor(
    private readonly store: NetworkStore,
    private readonly ground: Ground,
  ) {
    const views = new Views(store);
    this.networks = this.collection({
      plural: 'networks',
      singular: 'network',
      operation: 'networks',
      table: store.networks,
      view: views.network,
      missing: notFound('NetworkNotFound', 'Network'),
      alsoVisible: ({ external, shared }) => external || shared,
    });
    this.subnets = this.collection({
      plural: 'subnets',
      singular: 'subnet',
      operation: 'subnets',
      table: store.subnets,
      view: views.subnet,
      missing: notFound('SubnetNotFound', 'Subnet'),
    });
    this.ports = this.collection({
      plural: 'ports',
      singular: 'port',
      operation: 'ports',
      table: store.ports,
      view: views.port,
      missing: notFound('PortNotFound', 'Port'),
    });
    this.floatingIps = this.collection({
      plural: 'floatingips',
      singular: 'floatingip',
      operation: 'floating-ips',
      table: store.floatingIps,
      view: views.floatingIp,
      missing: notFound('FloatingIPNotFound', 'Floating IP', ''),
    });
    this.routers = this.collection({
      plural: 'routers',
      singular: 'router',
      operation: 'routers',
      table: store.routers,
      view: views.router,
      missing: notFound('RouterNotFound', 'Router'),
    });
    this.groups = this.collection({
      plural: 'security-groups',
      singular: 'security_group',
      operation: 'security-groups',
      table: store.securityGroups,
      view: views.securityGroup,
      missing: (id) => ['SecurityGroupNotFound', `Security group ${id} does not exist`],
    });
  }

  routes(): Route[] {
    return [
      { method: 'GET', path: '/', operation: 'versions', public: true, handle: versions },
      {
        method: 'GET',
        path: '/v2.0/extensions',
        operation: 'extensions.list',
        handle: () => json(200, { extensions: EXTENSIONS.map((alias) => ({ name: alias, alias, links: [] })) }),
      },
      ...this.quotaRoutes(),
      ...this.networks.reading(),
      ...this.subnets.reading(),
      ...this.ports.reading(),
      ...this.floatingIps.reading(),
      ...this.routers.reading(),
      ...this.groups.reading(),
      ...this.writingRoutes(),
    ];
  }

  private collection<R extends Standard>(collection: Collection<R>): CollectionRoutes<R> {
    return new CollectionRoutes(collection, this.ground, (record) => this.store.touch(record));
  }

  private quotaRoutes(): Route[] {
    const show = ({ caller, params }: OwnedExchange, detailed: boolean): Answer => {
      if (params['project'] !== caller.projectId && !caller.admin) {
        throw networkRefusal(403, 'PolicyNotAuthorized', 'rule:get_quota is disallowed by policy');
      }
      const { network, port, floatingip, security_group } = this.ground.quotas.reported(caller.projectName);
      const limits = { network, subnet: network, port, router: network, floatingip, security_group };
      const used = (name: string): number => this.used(name, caller.projectId);
      const entries = Object.entries(limits).map(([name, limit]): [string, unknown] => [
        name,
        detailed ? { limit, used: used(name), reserved: 0 } : limit,
      ]);
      return json(200, { quota: Object.fromEntries(entries) });
    };
    const details = (exchange: OwnedExchange): Answer => show(exchange, true);
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
        handle: (exchange) => show(exchange, false),
      },
      { method: 'GET', path: '/v2.0/quotas/:project/details', operation: 'quotas.details', handle: details },
      { method: 'GET', path: '/v2.0/quotas/:project/details.json', operation: 'quotas.details', handle: details },
    ];
  }

  private writingRoutes(): Route[] {
    const { store } = this;
    return [
      route('POST', '/v2.0/networks', 'networks.create', (exchange) => this.createNetwork(exchange)),
      route('DELETE', '/v2.0/networks/:id', 'networks.delete', (exchange) => this.deleteNetwork(exchange)),
      route('POST', '/v2.0/subnets', 'subnets.create', (exchange) => this.createSubnet(exchange)),
      route('POST', '/v2.0/ports', 'ports.create', (exchange) => this.createPort(exchange)),
      route('PUT', '/v2.0/ports/:id', 'ports.update', (exchange) => {
        const port = this.ports.own(exchange);
        const changes = memberOf(bodyOf(exchange, malformed), 'port', malformed);
        port.name = textOf(changes['name'], port.name);
        port.description = textOf(changes['description'], port.description);
        store.touch(port);
        return this.ports.one(200, port);
      }),
      route('DELETE', '/v2.0/ports/:id', 'ports.delete', (exchange) => this.deletePort(exchange)),
      route('POST', '/v2.0/floatingips', 'floating-ips.create', (exchange) => this.createFloatingIp(exchange)),
      route('PUT', '/v2.0/floatingips/:id', 'floating-ips.update', (exchange) => this.updateFloatingIp(exchange)),
      route('DELETE', '/v2.0/floatingips/:id', 'floating-ips.delete', (exchange) => {
        store.removeFloatingIp(this.floatingIps.own(exchange));
        return { status: 204 };
      }),
      route('PUT', '/v2.0/routers/:id/add_router_interface', 'routers.add-interface', (exchange) => {
        const router = this.routers.own(exchange);
        const subnet = this.subnets.ownById(textOf(bodyOf(exchange, malformed)['subnet_id'], ''), exchange.caller);
        const port = store.addInterface(router, subnet);
        return json(200, { id: router.id, subnet_id: subnet.id, subnet_ids: [subnet.id], port_id: port.id });
      }),
      route('POST', '/v2.0/security-groups', 'security-groups.create', (exchange) => {
        const spec = memberOf(bodyOf(exchange, malformed), 'security_group', malformed);
        this.checkQuota('security_group', exchange);
        const { projectId } = exchange.caller;
        const group = store.addSecurityGroup(projectId, textOf(spec['name'], ''), textOf(spec['description'], ''));
        return this.groups.one(201, group);
      }),
      route('DELETE', '/v2.0/security-groups/:id', 'security-groups.delete', (exchange) => {
        const group = this.groups.own(exchange);
        if ([...store.ports.all()].some((port) => port.securityGroups.includes(group.id))) {
          throw networkRefusal(409, 'SecurityGroupInUse', `Security Group ${group.id} in use.`);
        }
        store.securityGroups.remove(group.id, this.ground.clock.now());
        return { status: 204 };
      }),
    ];
  }

  private createNetwork(exchange: OwnedExchange): Answer {
    const spec = memberOf(bodyOf(exchange, malformed), 'network', malformed);
    this.checkQuota('network', exchange);
    return this.networks.one(201, this.store.addNetwork(exchange.caller.projectId, textOf(spec['name'], '')));
  }

  private deleteNetwork(exchange: OwnedExchange): Answer {
    const network = this.networks.own(exchange);
    if ([...this.store.ports.all()].some(({ networkId }) => networkId === network.id)) {
      const message = `Unable to complete operation on network ${network.id}. There are one or more ports still in use on the network.`;
      throw networkRefusal(409, 'NetworkInUse', message);
    }
    const now = this.ground.clock.now();
    for (const subnet of this.store.subnetsOf(network.id)) this.store.subnets.remove(subnet.id, now);
    this.store.networks.remove(network.id, now);
    return { status: 204 };
  }

  private createSubnet(exchange: OwnedExchange): Answer {
    const spec = memberOf(bodyOf(exchange, malformed), 'subnet', malformed);
    const network = this.networks.ownById(textOf(spec['network_id'], ''), exchange.caller);
    const cidr = textOf(spec['cidr'], '');
    const version = spec['ip_version'] === 6 ? 6 : 4;
    if (!/^[0-9a-fA-F.:]+\/\d+$/.test(cidr))
      throw networkRefusal(400, 'HTTPBadRequest', `'${cidr}' is not a valid IP subnet`);
    return this.subnets.one(201, this.store.addSubnet(network, textOf(spec['name'], ''), cidr, version));
  }

  private createPort(exchange: OwnedExchange): Answer {
    const spec = memberOf(bodyOf(exchange, malformed), 'port', malformed);
    const network = this.networks.visibleById(requiredIn(spec, 'network_id'), exchange.caller);
    this.checkQuota('port', exchange);
    const port = this.store.addPort({
      project: exchange.caller.projectId,
      networkId: network.id,
      name: textOf(spec['name'], ''),
      description: textOf(spec['description'], ''),
      deviceId: textOf(spec['device_id'], ''),
      deviceOwner: textOf(spec['device_owner'], ''),
    });
    return this.ports.one(201, port);
  }

  private deletePort(exchange: OwnedExchange): Answer {
    const port = this.ports.own(exchange);
    if (port.deviceOwner.startsWith('network:')) {
      const message = `Port ${port.id} cannot be deleted directly via the port API: has device owner ${port.deviceOwner}.`;
      throw networkRefusal(409, 'ServicePortInUse', message);
    }
    this.store.removePort(port);
    return { status: 204 };
  }

  private createFloatingIp(exchange: OwnedExchange): Answer {
    const { caller } = exchange;
    const spec = memberOf(bodyOf(exchange, malformed), 'floatingip', malformed);
    const network = this.networks.visibleById(requiredIn(spec, 'floating_network_id'), caller);
    if (!network.external) {
      const message = `Bad floatingip request: Network ${network.id} is not a valid external network.`;
      throw networkRefusal(400, 'BadRequest', message);
    }
    this.checkQuota('floatingip', exchange);
    const floating = this.store.addFloatingIp(caller.projectId, network, textOf(spec['description'], ''));
    const portId = spec['port_id'];
    const problem = typeof portId === 'string' ? this.store.associate(floating, portId, caller) : undefined;
    if (problem !== undefined) {
      this.store.removeFloatingIp(floating);
      throw refusedAssociation(problem, floating, textOf(portId, ''));
    }
    return this.floatingIps.one(201, floating);
  }

  private updateFloatingIp(exchange: OwnedExchange): Answer {
    const floating = this.floatingIps.own(exchange);
    const changes = memberOf(bodyOf(exchange, malformed), 'floatingip', malformed);
    const portId = changes['port_id'];
    if (portId === null) this.store.disassociate(floating);
    if (typeof portId === 'string') {
      const problem = this.store.associate(floating, portId, exchange.caller);
      if (problem !== undefined) throw refusedAssociation(problem, floating, portId);
    }
    floating.description = textOf(changes['description'], floating.description);
    this.store.touch(floating);
    return this.floatingIps.one(200, floating);
  }

  private checkQuota(name: QuotaName, { caller }: OwnedExchange): void {
    const limit = this.ground.quotas.enforced(caller.projectName)[name];
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

function versions({ serviceUrl }: { readonly serviceUrl: string }): Answer {
  const links = [{ rel: 'self', href: `${serviceUrl}/v2.0/` }];
  return json(200, { versions: [{ id: 'v2.0', status: 'CURRENT', links }] });
}

function route(method: string, path: string, operation: string, handle: (exchange: OwnedExchange) => Answer): Route {
  return { method, path, operation, handle };
}

function requiredIn(spec: JsonObject, key: string): string {
  const value = spec[key];
  if (typeof value === 'string') return value;
  throw networkRefusal(400, 'HTTPBadRequest', `Failed to parse request. Required attribute '${key}' not specified`);
}

function refusedAssociation(problem: AssociationProblem, floating: FloatingIpRecord, portId: string): Error {
  switch (problem.problem) {
    case 'no-port':
      return networkRefusal(404, 'PortNotFound', `Port ${portId} could not be found.`);
    case 'unreachable':
      return networkRefusal(
        404,
        'ExternalGatewayForFloatingIPNotFound',
        `External network ${floating.networkId} is not reachable from subnet ${problem.subnetId}.  Therefore, cannot associate Port ${portId} with a Floating IP.`,
      );
    case 'taken':
      return networkRefusal(
        409,
        'FloatingIPPortAlreadyAssociated',
        `Cannot associate floating IP ${floating.address} (${floating.id}) with port ${problem.portId} using fixed IP ${problem.fixedIp}, as that fixed IP already has a floating IP on external network ${floating.networkId}.`,
      );
  }
}

function typeOfFailure(status: number): string {
  if (status === 409) return 'Conflict';
  return status >= 500 ? 'HTTPInternalServerError' : 'HTTPClientError';
}
