/** Managed disks, which can be written through an address of their own, and images that are made from them. */

import { isJsonObject, type JsonObject } from '@nodepool/core';
import type { Cloud } from './cloud.js';
import { groupPath, resourcePath, type Answer, type Exchange, type Route } from './exchange.js';
import { objectIn, textIn } from './machines.js';
import { notFound, Refusal } from './refusal.js';
import { idOf, tagsIn, type Resource } from './store.js';

const DISK = 'Microsoft.Compute/disks';
const IMAGE = 'Microsoft.Compute/images';
const PAGE_BYTES = 512;
const MAX_PAGES_BYTES = 4 * 2 ** 20;

/** What was written to a disk that can be written to. */
interface Blob {
  readonly secret: string;
  readonly size: number;
  readonly data: Buffer;
}

export class Disks {
  private readonly blobs = new Map<string, Blob>();

  constructor(private readonly cloud: Cloud) {}

  routes(): readonly Route[] {
    return [
      { operation: 'disks.put', method: 'PUT', path: resourcePath(DISK), handle: (exchange) => this.putDisk(exchange) },
      {
        operation: 'disks.list',
        method: 'GET',
        path: groupPath(DISK),
        handle: (exchange) => this.list(DISK, exchange),
      },
      {
        operation: 'disks.delete',
        method: 'DELETE',
        path: resourcePath(DISK),
        handle: ({ params }) => this.deleteDisk(params),
      },
      {
        operation: 'disks.beginGetAccess',
        method: 'POST',
        path: resourcePath(DISK, '/beginGetAccess'),
        handle: (exchange) => this.grant(exchange),
      },
      {
        operation: 'disks.endGetAccess',
        method: 'POST',
        path: resourcePath(DISK, '/endGetAccess'),
        handle: ({ params }) => this.revoke(params),
      },
      {
        operation: 'pages.put',
        method: 'PUT',
        path: /^\/blobs\/([^/]+)$/,
        open: true,
        handle: (exchange) => this.putPages(exchange),
      },
      {
        operation: 'images.put',
        method: 'PUT',
        path: resourcePath(IMAGE),
        handle: (exchange) => this.putImage(exchange),
      },
      {
        operation: 'images.list',
        method: 'GET',
        path: groupPath(IMAGE),
        handle: (exchange) => this.list(IMAGE, exchange),
      },
      {
        operation: 'images.delete',
        method: 'DELETE',
        path: resourcePath(IMAGE),
        handle: ({ params }) => this.deleteImage(params),
      },
    ];
  }

  /** An image that is there without an upload. */
  addImage(group: string, name: string, location: string, tags: Readonly<Record<string, string>>): void {
    const properties = { storageProfile: { osDisk: { osType: 'Linux', osState: 'Generalized' } } };
    this.cloud.store.put({ type: IMAGE, group, name, location, tags, properties, workMs: 0 });
  }

  /** What was written to the disk that an image was made from. */
  contentOf(imageName: string): Buffer | undefined {
    return this.blobs.get(imageName)?.data;
  }

  private putDisk({ params, json }: Exchange): Answer {
    const [group = '', name = ''] = params;
    const { cloud } = this;
    cloud.requireGroup(group);
    const body = json();
    cloud.checkRequest('compute', 'Disk', body);
    const properties = objectIn(body, 'properties');
    const size = objectIn(properties, 'creationData')['uploadSizeBytes'];
    if (typeof size !== 'number' || size % 2 ** 20 !== PAGE_BYTES) {
      throw new Refusal(
        400,
        'InvalidParameter',
        'uploadSizeBytes must be a whole number of MiB and 512 bytes for the footer.',
      );
    }
    const { workMs } = cloud.settings();
    const disk = cloud.store.put({
      ...{ type: DISK, group, name, location: textIn(body, 'location'), tags: tagsIn(body['tags']), workMs },
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
      throw new Refusal(409, 'Conflict', `Disk ${name} has an active SAS and cannot be deleted.`);
    const owner = disk.extra['managedBy'];
    if (typeof owner === 'string' && this.cloud.store.get(owner) !== undefined) {
      throw new Refusal(409, 'OperationNotAllowed', `Disk ${name} is attached to VM ${owner}; it is InUse.`);
    }
    return this.remove(disk);
  }

  private grant({ params, json }: Exchange): Answer {
    const [group = '', name = ''] = params;
    const { cloud } = this;
    const disk = this.disk(group, name);
    cloud.checkRequest('compute', 'GrantAccessData', json());
    const size = Number(objectIn(disk.properties, 'creationData')['uploadSizeBytes']);
    const secret = cloud.random.uuidHex();
    const kept = this.blobs.get(name)?.data;
    this.blobs.set(name, { secret, size, data: kept ?? Buffer.alloc(size) });
    disk.properties = { ...disk.properties, diskState: 'ActiveUpload' };
    const result = (): JsonObject => ({ accessSAS: `${cloud.base}/blobs/${name}?sv=2018-03-28&sig=${secret}` });
    return cloud.accepted({ workMs: cloud.settings().workMs, result }, 202);
  }

  private revoke([group = '', name = '']: readonly string[]): Answer {
    const disk = this.disk(group, name);
    if (disk.properties['diskState'] === 'ActiveUpload') {
      disk.properties = { ...disk.properties, diskState: 'Unattached' };
      const blob = this.blobs.get(name);
      if (blob !== undefined) this.blobs.set(name, { ...blob, secret: this.cloud.random.uuidHex() });
    }
    return this.cloud.accepted({ workMs: this.cloud.settings().workMs }, 202);
  }

  private putPages({ params, query, headers, body }: Exchange): Answer {
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
    return { status: 201, text: '' };
  }

  private putImage({ params, json }: Exchange): Answer {
    const [group = '', name = ''] = params;
    const { cloud } = this;
    cloud.requireGroup(group);
    const body = json();
    cloud.checkRequest('compute', 'Image', body);
    const properties = objectIn(body, 'properties');
    const source = textIn(objectIn(objectIn(objectIn(properties, 'storageProfile'), 'osDisk'), 'managedDisk'), 'id');
    const disk = cloud.store.get(source);
    if (disk === undefined) throw notFound(source);
    const data = this.blobs.get(disk.name)?.data;
    const footer = data?.toString('latin1', data.length - PAGE_BYTES, data.length - PAGE_BYTES + 8);
    if (disk.properties['diskState'] !== 'Unattached' || footer !== 'conectix') {
      throw new Refusal(
        409,
        'OperationNotAllowed',
        `Disk ${disk.id} is not in a state in which an image can be made from it.`,
      );
    }
    const { workMs } = cloud.settings();
    const tags = tagsIn(body['tags']);
    const image = cloud.store.put({
      type: IMAGE,
      group,
      name,
      location: textIn(body, 'location'),
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
    const { workMs } = this.cloud.settings();
    this.cloud.store.remove(resource, workMs);
    return this.cloud.accepted({ workMs }, 202);
  }

  private list(type: typeof DISK | typeof IMAGE, exchange: Exchange): Answer {
    const [group = ''] = exchange.params;
    this.cloud.requireGroup(group);
    const found = this.cloud.store
      .list(type, exchange.lagMs)
      .filter((one) => one.group.toLowerCase() === group.toLowerCase());
    return this.cloud.page(
      found.map((one) => this.cloud.shown(one)),
      exchange,
    );
  }

  private disk(group: string, name: string): Resource {
    const disk = this.cloud.store.find(DISK, group, name);
    if (disk === undefined) throw notFound(idOf(DISK, group, name));
    return disk;
  }
}

function storageError(status: number, code: string): Answer {
  return { status, text: `<?xml version="1.0" encoding="utf-8"?><Error><Code>${code}</Code></Error>` };
}
