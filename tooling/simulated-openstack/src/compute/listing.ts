/** Listings of servers: filters, pages, deleted servers, and lag. */

import type { OpenStackState } from '../cloud-state.js';
import type { Answer } from '@nodepool/simulated-cloud';
import { json, type OwnedRequest } from '../http/request-context.js';
import { pageOf } from '../http/page.js';
import type { NetworkStore } from '../network/networks.js';
import { newestFirst } from '../table.js';
import { computeError } from './errors.js';
import { microversionOf } from './microversion.js';
import type { ServerRecord } from './records.js';
import type { ServerStore } from './servers.js';
import { briefly, serverView, type ViewContext } from './views.js';

interface Listed {
  readonly id: string;
  readonly server: ServerRecord;
  readonly deletedAt?: number;
}

export class ServerListing {
  constructor(
    private readonly state: OpenStackState,
    private readonly servers: ServerStore,
    private readonly networks: NetworkStore,
  ) {}

  answer(request: OwnedRequest, detailed: boolean): Answer {
    const { query, serviceUrl, path } = request;
    const limit = query.get('limit');
    if (limit !== null && !/^[0-9]*$/.test(limit)) {
      const problem = `'${limit}' does not match '^[0-9]*$'`;
      throw computeError(400, `Invalid input for query parameters limit. Value: ${limit}. ${problem}`);
    }
    const { pageLimit, microversion: newest } = this.state.settings;
    const sorted = this.wanted(request).sort((a, b) => newestFirst(a.server, b.server));
    const page = pageOf(sorted, request, {
      defaultLimit: pageLimit,
      maxLimit: pageLimit,
      unknownMarker: (marker) => computeError(400, `marker [${marker}] not found`),
    });
    const context: ViewContext = {
      serviceUrl,
      microversion: microversionOf(request.headers, newest),
      networks: this.networks,
    };
    const view = detailed ? serverView : briefly;
    const href = `${serviceUrl}${path}?${page.next ?? ''}`;
    return json(200, {
      servers: page.items.map(({ server, deletedAt }) =>
        view(server, deletedAt === undefined ? context : { ...context, deletedAt }),
      ),
      ...(page.next === undefined ? {} : { servers_links: [{ rel: 'next', href }] }),
    });
  }

  private wanted({ caller, query, lag }: OwnedRequest): Listed[] {
    const everyone = query.get('all_tenants');
    if (everyone !== null && everyone !== '0' && !caller.admin) {
      throw computeError(403, "Policy doesn't allow os_compute_api:servers:index:get_all_tenants to be performed.");
    }
    const now = this.state.clock.now();
    const living = this.servers.table.seen(now, lag).map((server): Listed => ({ id: server.id, server }));
    const since = query.get('changes-since');
    return [...living, ...this.deletedSince(since)].filter(
      ({ server }) =>
        (server.project === caller.projectId || (caller.admin && everyone !== null)) &&
        (since === null || server.updatedAt >= Date.parse(since)) &&
        passes(server, query),
    );
  }

  /** Returns the deleted servers that `changes-since` includes. */
  private deletedSince(since: string | null): Listed[] {
    if (since === null) return [];
    return [...this.servers.table.deleted()].map(({ record, deletedAt }) => ({
      id: record.id,
      server: record,
      deletedAt,
    }));
  }
}

/**
 * Returns true if a server matches the filters of ordinary users; nova ignores other filters. `name` is a regular
 * expression.
 */
function passes(server: ServerRecord, query: URLSearchParams): boolean {
  const [name, status, flavor, image] = ['name', 'status', 'flavor', 'image'].map((key) => query.get(key));
  if (typeof name === 'string' && !new RegExp(name).test(server.name)) return false;
  const statuses = query.getAll('status').map((wanted) => wanted.toUpperCase());
  if (typeof status === 'string' && !statuses.includes(server.status)) return false;
  if (typeof flavor === 'string' && server.spec.flavor.id !== flavor) return false;
  return typeof image !== 'string' || server.spec.imageId === image;
}
