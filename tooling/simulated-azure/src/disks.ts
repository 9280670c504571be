/** Managed disks, which are written through their own URLs, and images created from them. */

import { isDeepStrictEqual } from 'node:util';
import { isJsonObject, type JsonObject } from '@nodepool/core';
import type { Cloud } from './cloud.js';
import type { Answer } from '@nodepool/simulated-cloud';
import { published, type AzureContext, type AzureRoute } from './request-context.js';
import { objectIn, textIn } from './fields.js';
import { notFound, ArmError } from './api-error.js';
import { tagsIn, type Resource } from './store.js';

const DISK = 'Microsoft.Compute/disks';
const IMAGE = 'Microsoft.Compute/images';
const PAGE_BYTES = 512;
const MAX_PAGES_BYTES = 4 * 2 ** 20;

/** The data written to a disk. */
interface Blob {
  readonly secret: string;
  readonly size: number;
  readonly data: Buffer;
}

export class Disks {
  private readonly blobs = new Map<string, Blob>();

  constructor(private readonly cloud: Cloud) {}

  routes(): readonly AzureRoute[] {
    const { cloud } = this;
    const route = (operation: string, name: string, handle: AzureRoute['handle']): AzureRoute =>
      published(cloud.compute, operation, name, handle);
    const patch = (type: typeof DISK | typeof IMAGE, context: AzureContext): Answer => ({
      status: 200,
      body: cloud.shown(cloud.patch(type, context)),
    });
    return [
      route('disks.put', 'disks.createOrUpdate', (context) => this.putDisk(context)),
      route('disks.get', 'disks.get', (context) => cloud.get(DISK, context)),
      route('disks.patch', 'disks.update', (context) => patch(DISK, context)),
      route('disks.list', 'disks.listByResourceGroup', (context) => cloud.list(DISK, context)),
      route('disks.delete', 'disks.delete', ({ params }) => this.deleteDisk(params)),
      route('disks.beginGetAccess', 'disks.grantAccess', (context) => this.grant(context)),
      route('disks.endGetAccess', 'disks.revokeAccess', ({ params }) => this.revoke(params)),
      route('images.put', 'images.createOrUpdate', (context) => this.putImage(context)),
      route('images.get', 'images.get', (context) => cloud.get(IMAGE, context)),
      route('images.patch', 'images.update', (context) => patch(IMAGE, context)),
      route('images.list', 'images.list', (context) => cloud.list(IMAGE, context)),
      route('images.list', 'images.listByResourceGroup', (context) => cloud.list(IMAGE, context)),
      route('images.delete', 'images.delete', ({ params }) => this.deleteImage(params)),
      {
        operation: 'pages.put',
        method: 'PUT',
        path: '/blobs/:name',
        open: true,
        handle: (context) => this.putPages(context),
      },
    ];
  }

  /** Adds an image without an upload. */
  addImage(
    group: string,
    name: string,
    location: string,
    tags: Readonly<Record<string, string>>,
    hyperVGeneration: 'V1' | 'V2' = 'V1',
  ): void {
    const properties = { hyperVGeneration, storageProfile: { osDisk: { osType: 'Linux', osState: 'Generalized' } } };
    this.cloud.store.put({ type: IMAGE, group, name, location, tags, properties, workMs: 0 });
  }

  /** Returns the data that was written to the image's source disk. */
  contentOf(imageName: string): Buffer | undefined {
    return this.blobs.get(imageName)?.data;
  }

  private putDisk({ params, json }: AzureContext): Answer {
    const [group = '', name = ''] = params;
    const { cloud } = this;
    const body = json();
    const location = cloud.checkResource(DISK, params, body);
    const existing = cloud.store.find(DISK, group, name);
    if (existing !== undefined && isDeepStrictEqual(existing.request, body)) {
      return cloud.accepted({ workMs: 0 }, 200, cloud.shown(existing));
    }
    const properties = objectIn(body, 'properties');
    const size = objectIn(properties, 'creationData')['uploadSizeBytes'];
    if (typeof size !== 'number' || size % 2 ** 20 !== PAGE_BYTES) {
      throw new ArmError(
        400,
        'InvalidParameter',
        'uploadSizeBytes must be a whole number of MiB and 512 bytes for the footer.',
      );
    }
    const { workMs } = cloud.settings;
    const disk = cloud.store.put({
      ...{ type: DISK, group, name, location, request: body, tags: tagsIn(body['tags']), workMs },
      extra: isJsonObject(body['sku']) ? { sku: body['sku'] } : {},
      properties: { ...properties, diskState: 'ReadyToUpload', diskSizeGB: Math.ceil(size / 2 ** 30) },
    });
    return cloud.accepted({ workMs }, 202, cloud.shown(disk));
  }

  private deleteDisk([group = '', name = '']: readonly string[]): Answer {
    const disk = this.cloud.store.find(DISK, group, name);
    if (disk === undefined) return { status: 204 };
    const { diskState } = disk.properties;
    if (diskState === 'ActiveUpload')
      throw new ArmError(409, 'Conflict', `Disk ${name} has an active SAS and cannot be deleted.`);
    const owner = disk.extra['managedBy'];
    if (typeof owner === 'string' && this.cloud.store.get(owner) !== undefined) {
      throw new ArmError(409, 'OperationNotAllowed', `Disk ${name} is attached to VM ${owner}; it is InUse.`);
    }
    return this.remove(disk);
  }

  private grant({ params }: AzureContext): Answer {
    const [, name = ''] = params;
    const { cloud } = this;
    const disk = cloud.find(DISK, params);
    const size = Number(objectIn(disk.properties, 'creationData')['uploadSizeBytes']);
    const secret = cloud.random.uuidHex();
    const kept = this.blobs.get(name)?.data;
    this.blobs.set(name, { secret, size, data: kept ?? Buffer.alloc(size) });
    disk.properties = { ...disk.properties, diskState: 'ActiveUpload' };
    const result = (): JsonObject => ({ accessSAS: `${cloud.url}/blobs/${name}?sv=2018-03-28&sig=${secret}` });
    return cloud.accepted({ workMs: cloud.settings.workMs, result }, 202);
  }

  private revoke(params: readonly string[]): Answer {
    const [, name = ''] = params;
    const disk = this.cloud.find(DISK, params);
    if (disk.properties['diskState'] === 'ActiveUpload') {
      disk.properties = { ...disk.properties, diskState: 'Unattached' };
      const blob = this.blobs.get(name);
      if (blob !== undefined) this.blobs.set(name, { ...blob, secret: this.cloud.random.uuidHex() });
    }
    return this.cloud.accepted({ workMs: this.cloud.settings.workMs }, 202);
  }

  private putPages({ params, query, headers, body }: AzureContext): Answer {
    const blob = this.blobs.get(params[0] ?? '');
    if (blob?.secret !== query.get('sig')) return storageError(403, 'AuthenticationFailed');
    if (query.get('comp') !== 'page' || headers['x-ms-page-write'] !== 'update')
      return storageError(400, 'InvalidHeaderValue');
    const [, first = '', last = ''] = /^bytes=(\d+)-(\d+)$/.exec(String(headers['x-ms-range'] ?? '')) ?? [];
    const [start, end] = [Number(first), Number(last) + 1];
    const aligned = first !== '' && start % PAGE_BYTES === 0 && end % PAGE_BYTES === 0 && end <= blob.size;
    if (!aligned) return storageError(416, 'InvalidPageRange');
    if (end - start > MAX_PAGES_BYTES) return storageError(413, 'RequestBodyTooLarge');
    if (body.length !== end - start) return storageError(400, 'InvalidHeaderValue');
    body.copy(blob.data, start);
    return { status: 201, body: '', type: 'application/xml' };
  }

  private putImage({ params, json }: AzureContext): Answer {
    const [group = '', name = ''] = params;
    const { cloud } = this;
    const body = json();
    const location = cloud.checkResource(IMAGE, params, body);
    const existing = cloud.store.find(IMAGE, group, name);
    if (existing !== undefined && isDeepStrictEqual(existing.request, body)) {
      return cloud.accepted({ workMs: 0 }, 200, cloud.shown(existing));
    }
    const properties = objectIn(body, 'properties');
    const source = textIn(objectIn(objectIn(objectIn(properties, 'storageProfile'), 'osDisk'), 'managedDisk'), 'id');
    const disk = cloud.store.get(source);
    if (disk === undefined) throw notFound(source);
    if (disk.location !== location)
      throw new ArmError(400, 'InvalidParameter', `Disk ${disk.id} is in another location.`);
    const data = this.blobs.get(disk.name)?.data;
    const footer = data?.toString('latin1', data.length - PAGE_BYTES, data.length - PAGE_BYTES + 8);
    if (disk.properties['diskState'] !== 'Unattached' || footer !== 'conectix') {
      throw new ArmError(
        409,
        'OperationNotAllowed',
        `Disk ${disk.id} is not in a state in which an image can be made from it.`,
      );
    }
    const { workMs } = cloud.settings;
    const tags = tagsIn(body['tags']);
    const image = cloud.store.put({
      type: IMAGE,
      group,
      name,
      location,
      request: body,
      tags,
      properties,
      workMs,
    });
    return cloud.accepted({ workMs }, 201, cloud.shown(image));
  }

  private deleteImage([group = '', name = '']: readonly string[]): Answer {
    const image = this.cloud.store.find(IMAGE, group, name);
    return image === undefined ? { status: 204 } : this.remove(image);
  }

  private remove(resource: Resource): Answer {
    const { workMs } = this.cloud.settings;
    this.cloud.store.remove(resource, workMs);
    return this.cloud.accepted({ workMs }, 202);
  }
}

function storageError(status: number, code: string): Answer {
  const body = `<?xml version="1.0" encoding="utf-8"?><Error><Code>${code}</Code></Error>`;
  return { status, body, type: 'application/xml' };
}
