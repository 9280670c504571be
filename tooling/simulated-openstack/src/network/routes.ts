/** neutron: network v2.0. */

import type { JsonObject } from '@nodepool/core';
import type { OpenStackState } from '../cloud-state.js';
import type { Answer } from '@nodepool/simulated-cloud';
import {
  bodyOf,
  json,
  memberOf,
  textOf,
  type OwnedRequest,
  type Route,
  type Service,
} from '../http/request-context.js';
import { tokenRefused } from '../identity/routes.js';
import { CollectionRoutes, malformed, type Collection } from './collections.js';
import { networkFailure, networkError } from './errors.js';
import type { AssociationProblem, NetworkStore } from './networks.js';
import { NetworkQuotas } from './quotas.js';
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

/** Maximum length of a description in characters. */
const MAX_DESCRIPTION = 255;
/** Extensions that clients query. */
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

const notFound =
  (type: string, what: string, end = '.') =>
  (id: string) =>
    [type, `${what} ${id} could not be found${end}`] as const;

export function networkService(store: NetworkStore, state: OpenStackState): Service {
  const service = new NetworkRoutes(store, state);
  return {
    name: 'network',
    unauthorized: () => tokenRefused(state.authUrl),
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
  private readonly quotas: NetworkQuotas;

  constructor(
    private readonly store: NetworkStore,
    private readonly state: OpenStackState,
  ) {
    this.quotas = new NetworkQuotas(store, state);
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
      ...this.quotas.routes(),
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
    return new CollectionRoutes(collection, this.state, (record) => this.store.touch(record));
  }

  private writingRoutes(): Route[] {
    const { store } = this;
    return [
      route('POST', '/v2.0/networks', 'networks.create', (request) => this.createNetwork(request)),
      route('DELETE', '/v2.0/networks/:id', 'networks.delete', (request) => this.deleteNetwork(request)),
      route('POST', '/v2.0/subnets', 'subnets.create', (request) => this.createSubnet(request)),
      route('POST', '/v2.0/ports', 'ports.create', (request) => this.createPort(request)),
      route('PUT', '/v2.0/ports/:id', 'ports.update', (request) => {
        const port = this.ports.own(request);
        const changes = memberOf(bodyOf(request, malformed), 'port', malformed);
        port.name = textOf(changes['name'], port.name);
        port.description = textOf(changes['description'], port.description);
        store.touch(port);
        return this.ports.one(200, port);
      }),
      route('DELETE', '/v2.0/ports/:id', 'ports.delete', (request) => this.deletePort(request)),
      route('POST', '/v2.0/floatingips', 'floating-ips.create', (request) => this.createFloatingIp(request)),
      route('PUT', '/v2.0/floatingips/:id', 'floating-ips.update', (request) => this.updateFloatingIp(request)),
      route('DELETE', '/v2.0/floatingips/:id', 'floating-ips.delete', (request) => {
        store.removeFloatingIp(this.floatingIps.own(request));
        return { status: 204 };
      }),
      route('PUT', '/v2.0/routers/:id/add_router_interface', 'routers.add-interface', (request) => {
        const router = this.routers.own(request);
        const subnet = this.subnets.ownById(textOf(bodyOf(request, malformed)['subnet_id'], ''), request.caller);
        const port = store.addInterface(router, subnet);
        return json(200, { id: router.id, subnet_id: subnet.id, subnet_ids: [subnet.id], port_id: port.id });
      }),
      route('POST', '/v2.0/security-groups', 'security-groups.create', (request) => {
        const spec = memberOf(bodyOf(request, malformed), 'security_group', malformed);
        this.quotas.check('security_group', request);
        const { projectId } = request.caller;
        const group = store.addSecurityGroup(projectId, textOf(spec['name'], ''), textOf(spec['description'], ''));
        return this.groups.one(201, group);
      }),
      route('DELETE', '/v2.0/security-groups/:id', 'security-groups.delete', (request) => {
        const group = this.groups.own(request);
        if ([...store.ports.all()].some((port) => port.securityGroups.includes(group.id))) {
          throw networkError(409, 'SecurityGroupInUse', `Security Group ${group.id} in use.`);
        }
        store.securityGroups.remove(group.id, this.state.clock.now());
        return { status: 204 };
      }),
    ];
  }

  private createNetwork(request: OwnedRequest): Answer {
    const spec = memberOf(bodyOf(request, malformed), 'network', malformed);
    this.quotas.check('network', request);
    return this.networks.one(201, this.store.addNetwork(request.caller.projectId, textOf(spec['name'], '')));
  }

  private deleteNetwork(request: OwnedRequest): Answer {
    const network = this.networks.own(request);
    if ([...this.store.ports.all()].some(({ networkId }) => networkId === network.id)) {
      const message = `Unable to complete operation on network ${network.id}. There are one or more ports still in use on the network.`;
      throw networkError(409, 'NetworkInUse', message);
    }
    const now = this.state.clock.now();
    for (const subnet of this.store.subnetsOf(network.id)) this.store.subnets.remove(subnet.id, now);
    this.store.networks.remove(network.id, now);
    return { status: 204 };
  }

  private createSubnet(request: OwnedRequest): Answer {
    const spec = memberOf(bodyOf(request, malformed), 'subnet', malformed);
    const network = this.networks.ownById(textOf(spec['network_id'], ''), request.caller);
    const cidr = textOf(spec['cidr'], '');
    const version = spec['ip_version'] === 6 ? 6 : 4;
    if (!/^[0-9a-fA-F.:]+\/\d+$/.test(cidr))
      throw networkError(400, 'HTTPBadRequest', `'${cidr}' is not a valid IP subnet`);
    return this.subnets.one(201, this.store.addSubnet(network, textOf(spec['name'], ''), cidr, version));
  }

  private createPort(request: OwnedRequest): Answer {
    const spec = memberOf(bodyOf(request, malformed), 'port', malformed);
    const network = this.networks.visibleById(requiredIn(spec, 'network_id'), request.caller);
    this.quotas.check('port', request);
    const port = this.store.addPort({
      project: request.caller.projectId,
      networkId: network.id,
      name: textOf(spec['name'], ''),
      description: textOf(spec['description'], ''),
      deviceId: textOf(spec['device_id'], ''),
      deviceOwner: textOf(spec['device_owner'], ''),
    });
    return this.ports.one(201, port);
  }

  private deletePort(request: OwnedRequest): Answer {
    const port = this.ports.own(request);
    if (port.deviceOwner.startsWith('network:')) {
      const message = `Port ${port.id} cannot be deleted directly via the port API: has device owner ${port.deviceOwner}.`;
      throw networkError(409, 'ServicePortInUse', message);
    }
    this.store.removePort(port);
    return { status: 204 };
  }

  private createFloatingIp(request: OwnedRequest): Answer {
    const { caller } = request;
    const spec = memberOf(bodyOf(request, malformed), 'floatingip', malformed);
    const network = this.networks.visibleById(requiredIn(spec, 'floating_network_id'), caller);
    if (!network.external) {
      const message = `Bad floatingip request: Network ${network.id} is not a valid external network.`;
      throw networkError(400, 'BadRequest', message);
    }
    const description = textOf(spec['description'], '');
    if (description.length > MAX_DESCRIPTION) {
      const message = `Invalid input for description. Reason: '${description}' exceeds maximum length of ${MAX_DESCRIPTION}.`;
      throw networkError(400, 'HTTPBadRequest', message);
    }
    this.quotas.check('floatingip', request);
    const floating = this.store.addFloatingIp(caller.projectId, network, description);
    const portId = spec['port_id'];
    const problem = typeof portId === 'string' ? this.store.associate(floating, portId, caller) : undefined;
    if (problem !== undefined) {
      this.store.removeFloatingIp(floating);
      throw refusedAssociation(problem, floating, textOf(portId, ''));
    }
    return this.floatingIps.one(201, floating);
  }

  private updateFloatingIp(request: OwnedRequest): Answer {
    const floating = this.floatingIps.own(request);
    const changes = memberOf(bodyOf(request, malformed), 'floatingip', malformed);
    const portId = changes['port_id'];
    if (portId === null) this.store.disassociate(floating);
    if (typeof portId === 'string') {
      const problem = this.store.associate(floating, portId, request.caller);
      if (problem !== undefined) throw refusedAssociation(problem, floating, portId);
    }
    floating.description = textOf(changes['description'], floating.description);
    this.store.touch(floating);
    return this.floatingIps.one(200, floating);
  }
}

function versions({ serviceUrl }: { readonly serviceUrl: string }): Answer {
  const links = [{ rel: 'self', href: `${serviceUrl}/v2.0/` }];
  return json(200, { versions: [{ id: 'v2.0', status: 'CURRENT', links }] });
}

function route(method: string, path: string, operation: string, handle: (request: OwnedRequest) => Answer): Route {
  return { method, path, operation, handle };
}

function requiredIn(spec: JsonObject, key: string): string {
  const value = spec[key];
  if (typeof value === 'string') return value;
  throw networkError(400, 'HTTPBadRequest', `Failed to parse request. Required attribute '${key}' not specified`);
}

function refusedAssociation(problem: AssociationProblem, floating: FloatingIpRecord, portId: string): Error {
  switch (problem.problem) {
    case 'no-port':
      return networkError(404, 'PortNotFound', `Port ${portId} could not be found.`);
    case 'unreachable':
      return networkError(
        404,
        'ExternalGatewayForFloatingIPNotFound',
        `External network ${floating.networkId} is not reachable from subnet ${problem.subnetId}.  Therefore, cannot associate Port ${portId} with a Floating IP.`,
      );
    case 'taken':
      return networkError(
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
