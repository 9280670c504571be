/** cinder: block storage v3. */

import { isJsonObject, type JsonValue } from '@nodepool/core';
import type { OpenStackState } from '../cloud-state.js';
import { ApiError, type Answer } from '@nodepool/simulated-cloud';
import {
  bodyOf,
  htmlPage,
  json,
  memberOf,
  textOf,
  type Caller,
  type OwnedRequest,
  type Route,
  type Service,
} from '../http/request-context.js';
import { pageOf } from '../http/page.js';
import { tokenRefused } from '../identity/routes.js';
import type { CloudImages } from '../image/images.js';
import { ZONE } from '../settings.js';
import { isoMicros } from '../text.js';
import { newestFirst } from '../table.js';
import { volumeQuotaProblem } from './quota.js';
import { UPLOAD, uploadAsImage } from './upload-as-image.js';
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

export function volumeService(volumes: VolumeStore, images: CloudImages, state: OpenStackState): Service {
  const routes = new VolumeRoutes(volumes, images, state);
  return {
    name: 'volume',
    unauthorized: () => tokenRefused(state.authUrl),
    failure,
    noRoute: () => htmlPage(404, 'Not Found', 'The resource could not be found.'),
    common: () => HEADERS,
    routes: routes.all(),
  };
}

class VolumeRoutes {
  constructor(
    private readonly volumes: VolumeStore,
    private readonly images: CloudImages,
    private readonly state: OpenStackState,
  ) {}

  all(): Route[] {
    const inProject = (
      method: string,
      path: string,
      operation: string,
      handle: (request: OwnedRequest) => Answer,
    ): Route => ({
      method,
      path: `/v3/:project${path}`,
      operation,
      handle: (request) => {
        if (request.params['project'] !== request.caller.projectId) throw apiError(400, 'Malformed request url');
        return handle(request);
      },
    });
    return [
      { method: 'GET', path: '/', operation: 'versions', public: true, handle: versions },
      inProject('GET', '/volumes', 'volumes.list', (request) => this.list(request, briefly)),
      inProject('POST', '/volumes', 'volumes.create', (request) => this.create(request)),
      inProject('GET', '/volumes/detail', 'volumes.list-detail', (request) => this.list(request, viewOf)),
      inProject('GET', '/volumes/:id', 'volumes.show', (request) =>
        json(200, { volume: viewOf(this.own(request), request.serviceUrl) }),
      ),
      inProject('DELETE', '/volumes/:id', 'volumes.delete', (request) => this.delete(request)),
      inProject('POST', '/volumes/:id/action', 'volumes.action', (request) =>
        uploadAsImage(this.own(request), memberOf(bodyOf(request, malformed), UPLOAD, malformed), this.images),
      ),
      inProject('GET', '/volumes/:id/metadata', 'volumes.metadata', (request) =>
        json(200, { metadata: this.own(request).metadata }),
      ),
      inProject('POST', '/volumes/:id/metadata', 'volumes.set-metadata', (request) => this.setMetadata(request, false)),
      inProject('PUT', '/volumes/:id/metadata', 'volumes.set-metadata', (request) => this.setMetadata(request, true)),
      inProject('GET', '/limits', 'limits.show', ({ caller }) => this.limits(caller)),
      inProject('GET', '/os-quota-sets/:subject', 'quotas.show', (request) => this.quota(request)),
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

  private own({ params, caller }: OwnedRequest): VolumeRecord {
    const id = params['id'] ?? '';
    const volume = this.volumes.table.get(id);
    if (volume === undefined || (volume.project !== caller.projectId && !caller.admin)) {
      throw apiError(404, `Volume ${id} could not be found.`);
    }
    return volume;
  }

  private list(request: OwnedRequest, view: (volume: VolumeRecord, serviceUrl: string) => object): Answer {
    const { caller, query, lag, serviceUrl, path } = request;
    const everyone = caller.admin && query.has('all_tenants');
    const sorted = this.volumes.table
      .seen(this.state.clock.now(), lag)
      .filter((volume) => everyone || volume.project === caller.projectId)
      .filter((volume) => passes(volume, query))
      .sort(newestFirst);
    const { pageLimit } = this.state.settings;
    const page = pageOf(sorted, request, {
      defaultLimit: pageLimit,
      maxLimit: pageLimit,
      unknownMarker: (marker) => apiError(404, `Volume ${marker} could not be found.`),
    });
    const links =
      page.items.length === 0 || page.next === undefined ? undefined : [nextLink(serviceUrl + path, page.next)];
    return json(200, {
      volumes: page.items.map((volume) => view(volume, serviceUrl)),
      ...(links === undefined ? {} : { volumes_links: links }),
    });
  }

  private create(request: OwnedRequest): Answer {
    const { caller, serviceUrl } = request;
    const spec = memberOf(bodyOf(request, malformed), 'volume', malformed);
    const sizeGb = Number(spec['size']);
    if (!Number.isInteger(sizeGb) || sizeGb < 1) throw apiError(400, MALFORMED);
    const quota = this.state.quotas.enforced(caller.projectName);
    const problem = volumeQuotaProblem(quota, this.volumes.used(caller.projectId), sizeGb);
    if (problem !== undefined) throw new ApiError(overLimit(problem));
    const { name, description, imageRef, metadata } = spec;
    const volume = this.volumes.create({
      project: caller.projectId,
      userId: caller.userId,
      sizeGb,
      metadata: metadataOf(metadata ?? {}),
      name: typeof name === 'string' ? name : null,
      description: typeof description === 'string' ? description : null,
      imageId: typeof imageRef === 'string' ? imageRef : null,
      imageProperties: this.propertiesOf(typeof imageRef === 'string' ? imageRef : ''),
    });
    return json(202, { volume: viewOf(volume, serviceUrl) });
  }

  private delete(request: OwnedRequest): Answer {
    const volume = this.own(request);
    if (volume.status !== 'available' && volume.status !== 'error') throw apiError(400, NOT_DELETABLE);
    this.volumes.delete(volume);
    return { status: 202, type: 'text/html; charset=UTF-8', body: '' };
  }

  private propertiesOf(imageId: string): ReadonlyMap<string, string> {
    return new Map(this.images.table.get(imageId)?.properties);
  }

  /** Replaces the metadata if `instead` is true, else merges into it. */
  private setMetadata(request: OwnedRequest, instead: boolean): Answer {
    const volume = this.own(request);
    const metadata = metadataOf(bodyOf(request, malformed)['metadata']);
    volume.metadata = instead ? metadata : { ...volume.metadata, ...metadata };
    return json(200, { metadata: volume.metadata });
  }

  private limits(caller: Caller): Answer {
    const { volumes, gigabytes } = this.state.quotas.reported(caller.projectName);
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

  private quota({ caller, params, query }: OwnedRequest): Answer {
    const { volumes, gigabytes } = this.state.quotas.reported(caller.projectName);
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
  const { attachment, imageId, imageProperties } = volume;
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
    ...(imageId === null
      ? {}
      : { volume_image_metadata: { ...Object.fromEntries(imageProperties), image_id: imageId } }),
  };
}

function attachmentView(id: string, attachment: NonNullable<VolumeRecord['attachment']>): object {
  const { serverId, id: attachmentId, at, device } = attachment;
  const where = { server_id: serverId, host_name: null, device, attached_at: isoMicros(at) };
  return { id, attachment_id: attachmentId, volume_id: id, ...where };
}

/** Matches cinder's filters: name, status, and metadata as a Python dictionary. */
function passes(volume: VolumeRecord, query: URLSearchParams): boolean {
  const [name, status, metadata] = [query.get('name'), query.get('status'), query.get('metadata')];
  if (name !== null && volume.name !== name) return false;
  if (status !== null && volume.status !== status) return false;
  const pairs = [...(metadata ?? '').matchAll(/['"]([^'"]*)['"]\s*:\s*['"]([^'"]*)['"]/g)];
  return pairs.every(([, key = '', value]) => volume.metadata[key] === value);
}

function metadataOf(value: JsonValue | undefined): Record<string, string> {
  if (!isJsonObject(value)) throw apiError(400, MALFORMED);
  return Object.fromEntries(Object.entries(value).map(([key, text]) => [key, textOf(text, '')]));
}

function nextLink(url: string, query: string): object {
  return { rel: 'next', href: `${url}?${query}` };
}

function malformed(): ApiError {
  return apiError(400, MALFORMED);
}

function apiError(status: number, message: string): ApiError {
  return new ApiError(failure(status, message));
}

function failure(status: number, message: string, headers: Readonly<Record<string, string>> = {}): Answer {
  return json(status, { [KINDS[status] ?? 'computeFault']: { code: status, message } }, { ...HEADERS, ...headers });
}

/** Returns the error for an exceeded quota. Cinder adds a meaningless retry time. */
function overLimit(message: string): Answer {
  return json(413, { overLimit: { code: 413, message, retryAfter: '0' } }, { ...HEADERS, 'Retry-After': '0' });
}
