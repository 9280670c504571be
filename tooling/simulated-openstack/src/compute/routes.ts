/** nova: compute v2.1 with microversions. */

import type { Ground } from '../ground.js';
import {
  bodyOf,
  htmlPage,
  json,
  memberOf,
  type Answer,
  type Exchange,
  type OwnedExchange,
  type Route,
  type Service,
} from '../http/exchange.js';
import { tokenRefused } from '../identity/routes.js';
import { VolumeAttachments } from './attachments.js';
import { catalogueRoutes, type ComputeCatalogue } from './catalogue-routes.js';
import { computeFailure, computeRefusal, malformed } from './errors.js';
import { microversionOf, versionHeaders } from './microversion.js';
import { newServer, type Surroundings } from './new-server.js';
import { ServerListing } from './listing.js';
import { checkMetadata, checkServerBody } from './read-server.js';
import type { ServerRecord } from './records.js';
import { vmStateOf, type ServerStore } from './servers.js';
import { checkServerQuota } from './quota.js';
import { createdView, serverView, type ViewContext } from './views.js';

const CONSOLE = 'FAKE CONSOLE OUTPUT\nANOTHER\nLAST LINE';

export interface ComputeParts {
  readonly ground: Ground;
  readonly servers: ServerStore;
  readonly surroundings: Surroundings;
  readonly catalogue: ComputeCatalogue;
}

export function computeService(parts: ComputeParts, authUrl: () => string): Service {
  const { ground } = parts;
  const routes = new ServerRoutes(parts);
  return {
    name: 'compute',
    unauthorized: () => tokenRefused(authUrl()),
    failure: computeFailure,
    noRoute: () => htmlPage(404, 'Not Found', 'The resource could not be found.'),
    common: ({ headers }) => versionHeaders(`2.${microversionOf(headers, ground.settings().microversion)}`),
    routes: [...versionRoutes(ground), ...routes.all(), ...catalogueRoutes(parts.catalogue, ground, parts.servers)],
  };
}

/** Makes the route of one server, below its path. */
type RouteOfServer = (
  method: string,
  path: string,
  operation: string,
  handle: (server: ServerRecord, exchange: OwnedExchange) => Answer,
) => Route;

class ServerRoutes {
  private readonly listing: ServerListing;
  private readonly attachments: VolumeAttachments;

  constructor(private readonly parts: ComputeParts) {
    this.listing = new ServerListing(parts.ground, parts.servers, parts.surroundings.networks);
    this.attachments = new VolumeAttachments(parts.surroundings.volumes);
  }

  all(): Route[] {
    const base = '/v2.1/servers';
    const one: RouteOfServer = (method, path, operation, handle) => ({
      method,
      path: `${base}/:id${path}`,
      operation: `servers.${operation}`,
      handle: (exchange) => handle(this.own(exchange, operation), exchange),
    });
    return [
      {
        method: 'GET',
        path: base,
        operation: 'servers.list',
        handle: (exchange) => this.listing.answer(exchange, false),
      },
      { method: 'POST', path: base, operation: 'servers.create', handle: (exchange) => this.create(exchange) },
      {
        method: 'GET',
        path: `${base}/detail`,
        operation: 'servers.list-detail',
        handle: (exchange) => this.listing.answer(exchange, true),
      },
      one('GET', '', 'show', (server, exchange) => json(200, { server: serverView(server, this.context(exchange)) })),
      one('DELETE', '', 'delete', (server) => {
        this.parts.servers.delete(server);
        return { status: 204, type: 'application/json' };
      }),
      one('POST', '/action', 'action', (server, exchange) => this.act(server, exchange)),
      ...this.metadataRoutes(one),
      one('GET', '/os-interface', 'interfaces', (server) => this.interfaces(server)),
      ...this.volumeRoutes(one),
    ];
  }

  private volumeRoutes(one: RouteOfServer): Route[] {
    const { attachments } = this;
    const base = '/os-volume_attachments';
    return [
      one('GET', base, 'volumes', (server) => attachments.list(server)),
      one('POST', base, 'attach-volume', (server, exchange) => attachments.attach(server, exchange)),
      one('GET', `${base}/:volume`, 'volume', (server, exchange) => attachments.show(server, exchange)),
      one('DELETE', `${base}/:volume`, 'detach-volume', (server, exchange) => attachments.detach(server, exchange)),
    ];
  }

  private metadataRoutes(one: RouteOfServer): Route[] {
    const change = (server: ServerRecord, exchange: OwnedExchange, member: string): void => {
      const changes = memberOf(bodyOf(exchange, malformed), member, malformed);
      checkMetadata(changes);
      server.metadata = { ...server.metadata, ...(changes as Record<string, string>) };
    };
    return [
      one('GET', '/metadata', 'metadata', (server) => json(200, { metadata: server.metadata })),
      one('POST', '/metadata', 'set-metadata', (server, exchange) => {
        change(server, exchange, 'metadata');
        return json(200, { metadata: server.metadata });
      }),
      one('PUT', '/metadata/:key', 'set-metadata', (server, exchange) => {
        change(server, exchange, 'meta');
        const key = exchange.params['key'] ?? '';
        return json(200, { meta: { [key]: server.metadata[key] } });
      }),
      one('DELETE', '/metadata/:key', 'delete-metadata', (server, { params }) => {
        const key = params['key'] ?? '';
        if (!(key in server.metadata)) throw computeRefusal(404, 'Metadata item was not found');
        server.metadata = Object.fromEntries(Object.entries(server.metadata).filter(([other]) => other !== key));
        return { status: 204, type: 'application/json' };
      }),
    ];
  }

  /** Another project's server is hidden; but before it is scheduled nova finds it first, and then refuses. */
  private own({ params, caller }: OwnedExchange, operation: string): ServerRecord {
    const id = params['id'] ?? '';
    const server = this.parts.servers.table.get(id);
    if (server !== undefined && (server.project === caller.projectId || caller.admin)) return server;
    if (server?.taskState === 'scheduling') {
      throw computeRefusal(403, `Policy doesn't allow os_compute_api:servers:${operation} to be performed.`);
    }
    throw computeRefusal(404, `Instance ${id} could not be found.`);
  }

  private create(exchange: OwnedExchange): Answer {
    const { caller, serviceUrl } = exchange;
    const { servers, surroundings, ground } = this.parts;
    const body = memberOf(bodyOf(exchange, malformed), 'server', malformed);
    checkServerBody(body, this.context(exchange).microversion);
    const spec = newServer(body, caller, surroundings);
    checkServerQuota(spec, caller, ground, servers, surroundings.networks);
    const names =
      spec.minCount === 1
        ? [spec.name]
        : Array.from({ length: spec.minCount }, (_, index) => `${spec.name}-${index + 1}`);
    const [first] = names.map((name) => servers.create(spec, name, caller));
    if (first === undefined) throw computeRefusal(400, 'min_count must be greater than or equal to 1');
    const headers = { Location: `${serviceUrl}/v2.1/servers/${first.id}` };
    return json(202, { server: createdView(first, serviceUrl) }, headers);
  }

  private act(server: ServerRecord, exchange: OwnedExchange): Answer {
    const [action = ''] = Object.keys(bodyOf(exchange, malformed));
    const { servers } = this.parts;
    const need = (status: ServerRecord['status'], name: string): void => {
      if (server.status === status) return;
      const where = `vm_state ${vmStateOf(server)}`;
      throw computeRefusal(409, `Cannot '${name}' instance ${server.id} while it is in ${where}`);
    };
    switch (action) {
      case 'os-getConsoleOutput':
        if (server.hostId === '') throw computeRefusal(409, `Instance ${server.id} is not ready`);
        return json(200, { output: CONSOLE });
      case 'os-stop':
        need('ACTIVE', 'stop');
        servers.setPower(server, 'SHUTOFF');
        break;
      case 'os-start':
        need('SHUTOFF', 'start');
        servers.setPower(server, 'ACTIVE');
        break;
      case 'reboot':
        servers.setPower(server, 'ACTIVE');
        break;
      case 'forceDelete':
        servers.delete(server);
        break;
      default:
        throw computeRefusal(400, `There is no such action: ${action}`);
    }
    return { status: 202, type: 'application/json' };
  }

  private interfaces(server: ServerRecord): Answer {
    const ports = this.parts.surroundings.networks.portsOf(server.id);
    return json(200, {
      interfaceAttachments: ports.map(({ id, networkId, mac, status, fixedIps }) => ({
        net_id: networkId,
        port_id: id,
        mac_addr: mac,
        port_state: status,
        fixed_ips: fixedIps,
      })),
    });
  }

  private context({ serviceUrl, headers }: Exchange): ViewContext {
    const { ground, surroundings } = this.parts;
    const microversion = microversionOf(headers, ground.settings().microversion);
    return { serviceUrl, microversion, networks: surroundings.networks };
  }
}

function versionRoutes(ground: Ground): Route[] {
  const version = (serviceUrl: string, more: object): object => ({
    id: 'v2.1',
    status: 'CURRENT',
    version: ground.settings().microversion,
    min_version: '2.1',
    updated: '2013-07-23T11:33:21Z',
    links: [{ rel: 'self', href: `${serviceUrl}/v2.1/` }],
    ...more,
  });
  const media = { base: 'application/json', type: 'application/vnd.openstack.compute+json;version=2.1' };
  return [
    {
      method: 'GET',
      path: '/',
      operation: 'versions',
      public: true,
      handle: ({ serviceUrl }) => json(200, { versions: [version(serviceUrl, {})] }),
    },
    {
      method: 'GET',
      path: '/v2.1',
      operation: 'version',
      public: true,
      handle: ({ serviceUrl }) =>
        json(200, { version: version(serviceUrl, { 'media-types': [media] }) }, versionHeaders('2.1')),
    },
  ];
}
