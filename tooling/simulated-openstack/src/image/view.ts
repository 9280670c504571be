/** Reads and writes images in glance v2's format. */

import type { JsonObject, JsonValue } from '@nodepool/core';
import { isoSeconds, pythonRepr } from '../text.js';
import type { ImageRecord, NewImage } from './images.js';

const DISK_FORMATS = [null, 'ami', 'ari', 'aki', 'vhd', 'vhdx', 'vmdk', 'raw', 'qcow2', 'vdi', 'iso', 'ploop'] as const;
const CONTAINER_FORMATS = [null, 'ami', 'ari', 'aki', 'bare', 'ovf', 'ova', 'docker', 'compressed'] as const;
const VISIBILITIES = ['community', 'public', 'private', 'shared'] as const;

export function viewOf(image: ImageRecord): Record<string, unknown> {
  const self = `/v2/images/${image.id}`;
  return {
    ...Object.fromEntries(image.properties),
    name: image.name,
    disk_format: image.diskFormat,
    container_format: image.containerFormat,
    visibility: image.visibility,
    size: image.size,
    virtual_size: image.diskFormat === 'raw' ? image.size : null,
    status: image.status,
    checksum: image.md5,
    protected: image.protected,
    min_ram: image.minRam,
    min_disk: image.minDisk,
    owner: image.project,
    os_hidden: image.hidden,
    os_hash_algo: image.sha512 === null ? null : 'sha512',
    os_hash_value: image.sha512,
    id: image.id,
    created_at: isoSeconds(image.createdAt),
    updated_at: isoSeconds(image.updatedAt),
    tags: image.tags,
    self,
    file: `${self}/file`,
    schema: '/v2/schemas/image',
  };
}

/** An error for a body that violates the schema of images. */
export class SchemaViolation extends Error {
  constructor(violation: string, key: string) {
    super(`Provided object does not match schema 'image': ${violation}\n\nOn instance['${key}']`);
    this.name = 'SchemaViolation';
  }
}

/** Returns a new image. Throws `SchemaViolation` if the body is invalid. */
export function readNewImage(body: JsonObject): NewImage {
  const properties = new Map<string, string>();
  for (const [key, value] of Object.entries(body)) if (!KNOWN.has(key)) properties.set(key, textIn(key, value));
  return {
    id: body['id'] === undefined ? undefined : textIn('id', body['id']),
    name: body['name'] === undefined || body['name'] === null ? null : textIn('name', body['name']),
    diskFormat: oneOf('disk_format', body['disk_format'] ?? null, DISK_FORMATS),
    containerFormat: oneOf('container_format', body['container_format'] ?? null, CONTAINER_FORMATS),
    visibility: oneOf('visibility', body['visibility'] ?? 'shared', VISIBILITIES),
    protected: booleanIn('protected', body['protected']),
    hidden: booleanIn('os_hidden', body['os_hidden']),
    minDisk: integerIn('min_disk', body['min_disk']),
    minRam: integerIn('min_ram', body['min_ram']),
    tags: Array.isArray(body['tags']) ? [...new Set(body['tags'].map((tag: JsonValue) => textIn('tags', tag)))] : [],
    properties,
  };
}

const KNOWN = new Set([
  'id',
  'name',
  'disk_format',
  'container_format',
  'visibility',
  'protected',
  'os_hidden',
  'min_disk',
  'min_ram',
  'tags',
]);

/** Sets one attribute, as by a JSON patch. Throws `SchemaViolation` if it is invalid. */
export function setAttribute(image: ImageRecord, key: string, value: JsonValue): void {
  if (!KNOWN.has(key)) {
    image.properties.set(key, textIn(key, value));
    return;
  }
  const { name, visibility, protected: kept, hidden, minDisk, minRam, tags } = readNewImage({ [key]: value });
  if (key === 'name') image.name = name;
  if (key === 'visibility') image.visibility = visibility;
  if (key === 'protected') image.protected = kept;
  if (key === 'os_hidden') image.hidden = hidden;
  if (key === 'min_disk') image.minDisk = minDisk;
  if (key === 'min_ram') image.minRam = minRam;
  if (key === 'tags') image.tags = tags;
}

function textIn(key: string, value: JsonValue | undefined): string {
  if (typeof value === 'string') return value;
  throw new SchemaViolation(`${pythonRepr(value)} is not of type 'string'`, key);
}

function booleanIn(key: string, value: JsonValue | undefined): boolean {
  if (value === undefined) return false;
  if (typeof value === 'boolean') return value;
  throw new SchemaViolation(`${pythonRepr(value)} is not of type 'boolean'`, key);
}

function integerIn(key: string, value: JsonValue | undefined): number {
  if (value === undefined) return 0;
  if (typeof value === 'number' && Number.isInteger(value)) return value;
  throw new SchemaViolation(`${pythonRepr(value)} is not of type 'integer'`, key);
}

function oneOf<T extends string | null>(key: string, value: JsonValue, allowed: readonly T[]): T {
  const found = allowed.find((candidate) => candidate === value);
  if (found !== undefined) return found;
  throw new SchemaViolation(`${pythonRepr(value)} is not one of ${pythonRepr(allowed)}`, key);
}
