/** cinder: block storage v3. */

import { isJsonObject, type JsonValue } from '@nodepool/core';
import type { Ground } from '../ground.js';
import {
  bodyOf,
  htmlPage,
  json,
  memberOf,
  textOf,
  Refusal,
  type Answer,
  type Caller,
  type OwnedExchange,
  type Route,
  type Service,
} from '../http/exchange.js';
import { pageOf } from '../http/page.js';
import { tokenRefused } from '../identity/routes.js';
import { ZONE } from '../settings.js';
import { isoMicros } from '../text.js';
import { newestFirst } from '../table.js';
import { volumeQuotaProblem } from './quota.js';
import type { VolumeRecord, VolumeStore } from './volumes.js';

const HEADERS = { 'Openstack-Api-Version': 'volume 3.0', Vary: 'OpenStack-API-Version' } as const;
const MALFORMED = 'The server could not comply with the request since it is either malformed or otherwise incorrect.';
const NOT_DELETABLE =
  'Invalid volume: Volume status must be available or error or error_restoring or error_extending or error_managing and must not be migrating, attached, belong to a group, have snapshots, awaiting a transfer, or be disassociated from snapshots after volume transfer.';
const KINDS: Readonly<Record<number, string>> = {
  400: 'badRequest',
  403: 'forbidden',
  404: 'itemNotFound',
  409: 'conflictingRequest',
  413: 'overLimit',
  429: 'overLimit',
  503: 'serviceUnavailable',
};

export function volumeService(volumes: VolumeStore, ground: Ground, authUrl: () => string): Service {
  const routes = new VolumeRoutes(volumes, ground);
  return {
    name: 'volume',
    unauthorized: () => tokenRefused(authUrl()),
    failure,
    noRoute: () => htmlPage(404, 'Not Found', 'The resource could not be found.'),
    common: () => HEADERS,
    routes: routes.all(),
  };
}

class VolumeRoutes {
  constructor(
    private readonly volumes: VolumeStore,
    private readonly ground: Ground,
  ) {}

  all(): Route[] {
    const inProject = (
      method: string,
      path: string,
      operation: string,
      handle: (exchange: OwnedExchange) => Answer,
    ): Route => ({
      method,
      path: `/v3/:project${path}`,
      operation,
      handle: (exchange) => {
        if (exchange.params['project'] !== exchange.caller.projectId) throw refusal(400, 'Malformed request url');
        return handle(exchange);
      },
    });
    return [
      { method: 'GET', path: '/', operation: 'versions', public: true, handle: versions },
      inProject('GET', '/volumes', 'volumes.list', (exchange) => this.list(exchange, briefly)),
      inProject('POST', '/volumes', 'volumes.create', (exchange) => this.create(exchange)),
      inProject('GET', '/volumes/detail', 'volumes.list-detail', (exchange) => this.list(exchange, viewOf)),
      inProject('GET', '/volumes/:id', 'volumes.show', (exchange) =>
        json(200, { volume: viewOf(this.own(exchange), exchange.serviceUrl) }),
      ),
      inProject('DELETE', '/volumes/:id', 'volumes.delete', (exchange) => this.delete(exchange)),
      inProject('GET', '/volumes/:id/metadata', 'volumes.metadata', (exchange) =>
        json(200, { metadata: this.own(exchange).metadata }),
      ),
      inProject('POST', '/volumes/:id/metadata', 'volumes.set-metadata', (exchange) =>
        this.setMetadata(exchange, false),
      ),
      inProject('PUT', '/volumes/:id/metadata', 'volumes.set-metadata', (exchange) => this.setMetadata(exchange, true)),
      inProject('GET', '/limits', 'limits.show', ({ caller }) => this.limits(caller)),
      inProject('GET', '/os-quota-sets/:subject', 'quotas.show', (exchange) => this.quota(exchange)),
      inProject('GET', '/os-availability-zone', 'zones.list', () =>
        json(200, { availabilityZoneInfo: [{ zoneName: ZONE, zoneState: { available: true } }] }),
      ),
      inProject('GET', '/types', 'types.list', () =>
        json(200, {
          volume_types: [{ id: 'fake', name: 'fake', is_public: true, description: null, extra_specs: {} }],
        }),
      ),
    ];
  }

  private own({ params, caller }: OwnedExchange): VolumeRecord {
    const id = params['id'] ?? '';
    const volume = this.volumes.table.get(id);
    if (volume === undefined || (volume.project !== caller.projectId && !caller.admin)) {
      throw refusal(404, `Volume ${id} could not be found.`);
    }
    return volume;
  }

  private list(exchange: OwnedExchange, view: (volume: VolumeRecord, serviceUrl: string) => object): Answer {
    const { caller, query, lag, serviceUrl, path } = exchange;
    const everyone = caller.admin && query.has('all_tenants');
    const sorted = this.volumes.table
      .seen(this.ground.clock.now(), lag)
      .filter((volume) => everyone || volume.project === caller.projectId)
      .filter((volume) => passes(volume, query))
      .sort(newestFirst);
    const { pageLimit } = this.ground.settings();
    const page = pageOf(sorted, exchange, {
      defaultLimit: pageLimit,
      maxLimit: pageLimit,
      unknownMarker: (marker) => refusal(404, `Volume ${marker} could not be found.`),
    });
    const links =
      page.items.length === 0 || page.next === undefined ? undefined : [nextLink(serviceUrl + path, page.next)];
    return json(200, {
      volumes: page.items.map((volume) => view(volume, serviceUrl)),
      ...(links === undefined ? {} : { volumes_links: links }),
    });
  }

  private create(exchange: OwnedExchange): Answer {
    const { caller, serviceUrl } = exchange;
    const spec = memberOf(bodyOf(exchange, malformed), 'volume', malformed);
    const sizeGb = Number(spec['size']);
    if (!Number.isInteger(sizeGb) || sizeGb < 1) throw refusal(400, MALFORMED);
    const quota = this.ground.quotas.enforced(caller.projectName);
    const problem = volumeQuotaProblem(quota, this.volumes.used(caller.projectId), sizeGb);
    if (problem !== undefined) throw new Refusal(overLimit(problem));
    const { name, description, imageRef, metadata } = spec;
    const volume = this.volumes.create({
      project: caller.projectId,
      userId: caller.userId,
      sizeGb,
      metadata: metadataOf(metadata ?? {}),
      name: typeof name === 'string' ? name : null,
      description: typeof description === 'string' ? description : null,
      imageId: typeof imageRef === 'string' ? imageRef : null,
    });
    return json(202, { volume: viewOf(volume, serviceUrl) });
  }

  private delete(exchange: OwnedExchange): Answer {
    const volume = this.own(exchange);
    if (volume.status !== 'available' && volume.status !== 'error') throw refusal(400, NOT_DELETABLE);
    this.volumes.delete(volume);
    return { status: 202, type: 'text/html; charset=UTF-8', body: '' };
  }

  /** Instead of what there is, or added to it. */
  private setMetadata(exchange: OwnedExchange, instead: boolean): Answer {
    const volume = this.own(exchange);
    const metadata = metadataOf(bodyOf(exchange, malformed)['metadata']);
    volume.metadata = instead ? metadata : { ...volume.metadata, ...metadata };
    return json(200, { metadata: volume.metadata });
  }

  private limits(caller: Caller): Answer {
    const { volumes, gigabytes } = this.ground.quotas.reported(caller.projectName);
    const used = this.volumes.used(caller.projectId);
    const absolute = {
      maxTotalVolumes: volumes,
      maxTotalSnapshots: volumes,
      maxTotalVolumeGigabytes: gigabytes,
      maxTotalBackups: 10,
      maxTotalBackupGigabytes: 1000,
      totalVolumesUsed: used.volumes,
      totalGigabytesUsed: used.gigabytes,
      totalSnapshotsUsed: 0,
      totalBackupsUsed: 0,
      totalBackupGigabytesUsed: 0,
    };
    return json(200, { limits: { rate: [], absolute } });
  }

  private quota({ caller, params, query }: OwnedExchange): Answer {
    const { volumes, gigabytes } = this.ground.quotas.reported(caller.projectName);
    const used = this.volumes.used(caller.projectId);
    const detailed = (query.get('usage') ?? '').toLowerCase() === 'true';
    const entry = (limit: number, inUse: number): unknown => (detailed ? { limit, in_use: inUse, reserved: 0 } : limit);
    const quota_set = {
      id: params['subject'],
      volumes: entry(volumes, used.volumes),
      gigabytes: entry(gigabytes, used.gigabytes),
    };
    return json(200, { quota_set });
  }
}

function versions({ serviceUrl }: { readonly serviceUrl: string }): Answer {
  const links = [{ rel: 'self', href: `${serviceUrl}/v3/` }];
  const facts = { id: 'v3.0', status: 'CURRENT', version: '3.70', min_version: '3.0', updated: '2022-08-31T00:00:00Z' };
  return json(300, { versions: [{ ...facts, links }] }, HEADERS);
}

function linksOf({ id, project }: VolumeRecord, serviceUrl: string): object[] {
  return [
    { rel: 'self', href: `${serviceUrl}/v3/${project}/volumes/${id}` },
    { rel: 'bookmark', href: `${serviceUrl}/${project}/volumes/${id}` },
  ];
}

function briefly(volume: VolumeRecord, serviceUrl: string): object {
  return { id: volume.id, name: volume.name, links: linksOf(volume, serviceUrl) };
}

function viewOf(volume: VolumeRecord, serviceUrl: string): object {
  const { attachment, imageId } = volume;
  return {
    id: volume.id,
    status: volume.status,
    size: volume.sizeGb,
    availability_zone: ZONE,
    created_at: isoMicros(volume.createdAt),
    updated_at: volume.updatedAt === null ? null : isoMicros(volume.updatedAt),
    name: volume.name,
    description: volume.description,
    volume_type: 'fake',
    snapshot_id: null,
    source_volid: null,
    metadata: volume.metadata,
    links: linksOf(volume, serviceUrl),
    user_id: volume.userId,
    bootable: String(imageId !== null),
    encrypted: false,
    replication_status: null,
    consistencygroup_id: null,
    multiattach: false,
    attachments: attachment === null ? [] : [attachmentView(volume.id, attachment)],
    'os-vol-tenant-attr:tenant_id': volume.project,
    ...(imageId === null ? {} : { volume_image_metadata: { image_id: imageId } }),
  };
}

function attachmentView(id: string, attachment: NonNullable<VolumeRecord['attachment']>): object {
  const { serverId, id: attachmentId, at, device } = attachment;
  const where = { server_id: serverId, host_name: null, device, attached_at: isoMicros(at) };
  return { id, attachment_id: attachmentId, volume_id: id, ...where };
}

/** Filters that cinder knows: name, status, and metadata as a Python dictionary. */
function passes(volume: VolumeRecord, query: URLSearchParams): boolean {
  const [name, status, metadata] = [query.get('name'), query.get('status'), query.get('metadata')];
  if (name !== null && volume.name !== name) return false;
  if (status !== null && volume.status !== status) return false;
  const pairs = [...(metadata ?? '').matchAll(/['"]([^'"]*)['"]\s*:\s*['"]([^'"]*)['"]/g)];
  return pairs.every(([, key = '', value]) => volume.metadata[key] === value);
}

function metadataOf(value: JsonValue | undefined): Record<string, string> {
  if (!isJsonObject(value)) throw refusal(400, MALFORMED);
  return Object.fromEntries(Object.entries(value).map(([key, text]) => [key, textOf(text, '')]));
}

function nextLink(url: string, query: string): object {
  return { rel: 'next', href: `${url}?${query}` };
}

function malformed(): Refusal {
  return refusal(400, MALFORMED);
}

function refusal(status: number, message: string): Refusal {
  return new Refusal(failure(status, message));
}

function failure(status: number, message: string, headers: Readonly<Record<string, string>> = {}): Answer {
  return json(status, { [KINDS[status] ?? 'computeFault']: { code: status, message } }, { ...HEADERS, ...headers });
}

/** A used-up quota; cinder says so with a time to come again, which is none. */
function overLimit(message: string): Answer {
  return json(413, { overLimit: { code: 413, message, retryAfter: '0' } }, { ...HEADERS, 'Retry-After': '0' });
}
