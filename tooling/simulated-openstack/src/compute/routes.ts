/** nova: compute v2.1 with microversions. */

import type { OpenStackState } from '../cloud-state.js';
import type { Answer } from '@nodepool/simulated-cloud';
import {
  bodyOf,
  htmlPage,
  json,
  memberOf,
  type OpenStackRequest,
  type OwnedRequest,
  type Route,
  type Service,
} from '../http/request-context.js';
import { tokenRefused } from '../identity/routes.js';
import { VolumeAttachments } from './attachments.js';
import { catalogueRoutes, type ComputeCatalogue } from './catalogue-routes.js';
import { computeFailure, computeError, malformed } from './errors.js';
import { microversionOf, versionHeaders } from './microversion.js';
import { newServer, type ServerContext } from './new-server.js';
import { ServerListing } from './listing.js';
import { checkMetadata, checkServerBody } from './read-server.js';
import type { ServerRecord } from './records.js';
import { vmStateOf, type ServerStore } from './servers.js';
import { Snapshots } from './snapshots.js';
import { checkServerQuota } from './quota.js';
import { createdView, serverView, type ViewContext } from './views.js';

const CONSOLE = 'FAKE CONSOLE OUTPUT\nANOTHER\nLAST LINE';

export interface ComputeParts {
  readonly state: OpenStackState;
  readonly servers: ServerStore;
  readonly context: ServerContext;
  readonly catalogue: ComputeCatalogue;
}

export function computeService(parts: ComputeParts): Service {
  const { state } = parts;
  const routes = new ServerRoutes(parts);
  return {
    name: 'compute',
    unauthorized: () => tokenRefused(state.authUrl),
    failure: computeFailure,
    noRoute: () => htmlPage(404, 'Not Found', 'The resource could not be found.'),
    common: ({ headers }) => versionHeaders(`2.${microversionOf(headers, state.settings.microversion)}`),
    routes: [...versionRoutes(state), ...routes.all(), ...catalogueRoutes(parts.catalogue, state, parts.servers)],
  };
}

/** Creates the route of one server, relative to its path. */
type RouteOfServer = (
  method: string,
  path: string,
  operation: string,
  handle: (server: ServerRecord, request: OwnedRequest) => Answer,
) => Route;

class ServerRoutes {
  private readonly listing: ServerListing;
  private readonly attachments: VolumeAttachments;
  private readonly snapshots: Snapshots;

  constructor(private readonly parts: ComputeParts) {
    this.listing = new ServerListing(parts.state, parts.servers, parts.context.networks);
    this.attachments = new VolumeAttachments(parts.context.volumes);
    this.snapshots = new Snapshots(parts.servers, parts.context.images);
  }

  all(): Route[] {
    const base = '/v2.1/servers';
    const one: RouteOfServer = (method, path, operation, handle) => ({
      method,
      path: `${base}/:id${path}`,
      operation: `servers.${operation}`,
      handle: (request) => handle(this.own(request, operation), request),
    });
    return [
      {
        method: 'GET',
        path: base,
        operation: 'servers.list',
        handle: (request) => this.listing.answer(request, false),
      },
      { method: 'POST', path: base, operation: 'servers.create', handle: (request) => this.create(request) },
      {
        method: 'GET',
        path: `${base}/detail`,
        operation: 'servers.list-detail',
        handle: (request) => this.listing.answer(request, true),
      },
      one('GET', '', 'show', (server, request) => json(200, { server: serverView(server, this.context(request)) })),
      one('DELETE', '', 'delete', (server) => {
        this.parts.servers.delete(server);
        return { status: 204, type: 'application/json' };
      }),
      one('POST', '/action', 'action', (server, request) => this.act(server, request)),
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
      one('POST', base, 'attach-volume', (server, request) => attachments.attach(server, request)),
      one('GET', `${base}/:volume`, 'volume', (server, request) => attachments.show(server, request)),
      one('DELETE', `${base}/:volume`, 'detach-volume', (server, request) => attachments.detach(server, request)),
    ];
  }

  private metadataRoutes(one: RouteOfServer): Route[] {
    const change = (server: ServerRecord, request: OwnedRequest, member: string): void => {
      const changes = memberOf(bodyOf(request, malformed), member, malformed);
      checkMetadata(changes);
      server.metadata = { ...server.metadata, ...(changes as Record<string, string>) };
    };
    return [
      one('GET', '/metadata', 'metadata', (server) => json(200, { metadata: server.metadata })),
      one('POST', '/metadata', 'set-metadata', (server, request) => {
        change(server, request, 'metadata');
        return json(200, { metadata: server.metadata });
      }),
      one('PUT', '/metadata/:key', 'set-metadata', (server, request) => {
        change(server, request, 'meta');
        const key = request.params['key'] ?? '';
        return json(200, { meta: { [key]: server.metadata[key] } });
      }),
      one('DELETE', '/metadata/:key', 'delete-metadata', (server, { params }) => {
        const key = params['key'] ?? '';
        if (!(key in server.metadata)) throw computeError(404, 'Metadata item was not found');
        server.metadata = Object.fromEntries(Object.entries(server.metadata).filter(([other]) => other !== key));
        return { status: 204, type: 'application/json' };
      }),
    ];
  }

  /**
   * Returns the caller's server. Other projects' servers are hidden; but nova finds one before it is scheduled, and
   * then refuses access.
   */
  private own({ params, caller }: OwnedRequest, operation: string): ServerRecord {
    const id = params['id'] ?? '';
    const server = this.parts.servers.table.get(id);
    if (server !== undefined && (server.project === caller.projectId || caller.admin)) return server;
    if (server?.taskState === 'scheduling') {
      throw computeError(403, `Policy doesn't allow os_compute_api:servers:${operation} to be performed.`);
    }
    throw computeError(404, `Instance ${id} could not be found.`);
  }

  private create(request: OwnedRequest): Answer {
    const { caller, serviceUrl } = request;
    const { servers, context, state } = this.parts;
    const body = memberOf(bodyOf(request, malformed), 'server', malformed);
    checkServerBody(body, this.context(request).microversion);
    const spec = newServer(body, caller, context);
    checkServerQuota(spec, caller, state, servers, context.networks);
    const names =
      spec.minCount === 1
        ? [spec.name]
        : Array.from({ length: spec.minCount }, (_, index) => `${spec.name}-${index + 1}`);
    const [first] = names.map((name) => servers.create(spec, name, caller));
    if (first === undefined) throw computeError(400, 'min_count must be greater than or equal to 1');
    const headers = { Location: `${serviceUrl}/v2.1/servers/${first.id}` };
    return json(202, { server: createdView(first, serviceUrl) }, headers);
  }

  private act(server: ServerRecord, request: OwnedRequest): Answer {
    const body = bodyOf(request, malformed);
    const [action = ''] = Object.keys(body);
    const { servers } = this.parts;
    const need = (status: ServerRecord['status'], name: string): void => {
      if (server.status === status) return;
      const where = `vm_state ${vmStateOf(server)}`;
      throw computeError(409, `Cannot '${name}' instance ${server.id} while it is in ${where}`);
    };
    switch (action) {
      case 'os-getConsoleOutput':
        if (server.hostId === '') throw computeError(409, `Instance ${server.id} is not ready`);
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
      case 'createImage':
      case 'createBackup':
        return this.snapshots.take(server, action, body, request);
      case 'shelve':
        need('ACTIVE', 'shelve');
        servers.shelve(server, this.snapshots.shelve(server, request.caller));
        break;
      case 'unshelve':
        need('SHELVED_OFFLOADED', 'unshelve');
        this.snapshots.unshelve(server);
        break;
      case 'forceDelete':
        servers.delete(server);
        break;
      default:
        throw computeError(400, `There is no such action: ${action}`);
    }
    return { status: 202, type: 'application/json' };
  }

  private interfaces(server: ServerRecord): Answer {
    const ports = this.parts.context.networks.portsOf(server.id);
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

  private context({ serviceUrl, headers }: OpenStackRequest): ViewContext {
    const { state, context } = this.parts;
    const microversion = microversionOf(headers, state.settings.microversion);
    return { serviceUrl, microversion, networks: context.networks };
  }
}

function versionRoutes(state: OpenStackState): Route[] {
  const version = (serviceUrl: string, more: object): object => ({
    id: 'v2.1',
    status: 'CURRENT',
    version: state.settings.microversion,
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
