/** Calls to the image service (glance, API v2), and the properties that the driver reads from its answers. */

import { numberAt, stringAt, type Call, type JsonObject } from '@nodepool/core';
import type { Readable } from 'node:stream';
import { requiredText } from './answers.js';
import { allPages } from './pages.js';
import { textValues } from './server.js';
import type { ServiceRequest, Session } from './session.js';

/** Images per page; the service's default is 25. */
const PAGE_SIZE = 500;

export interface Image {
  readonly id: string;
  readonly name: string;
  /** `queued`, `saving`, `importing`, `active`, `killed`, `deleted`, … */
  readonly status: string;
  readonly size: number | undefined;
  /** MD5 of the data, hex. */
  readonly checksum: string | undefined;
  /** A second checksum, with an algorithm that the cloud chooses. */
  readonly hash: { readonly algorithm: string; readonly value: string } | undefined;
  readonly createdAt: string;
  /** All string properties of the image. */
  readonly properties: Readonly<Record<string, string>>;
}

export class Images {
  constructor(
    private readonly session: Session,
    private readonly projectId: () => Promise<string | undefined>,
  ) {}

  /** Lists the images that the project can see and that match the filter. */
  async listImages(call: Call, filter: Readonly<Record<string, string>> = {}): Promise<readonly Image[]> {
    const query = new URLSearchParams({ limit: String(PAGE_SIZE), ...filter }).toString();
    const images = await allPages(this.session, get('images', `/images?${query}`), 'images', call);
    return images.map((image) => readImage(image));
  }

  /**
   * Lists the images of the project, including hidden ones, which the service lists only on request and alone.
   * Operators may share images with other projects, which changes their visibility.
   */
  async listOwnImages(call: Call): Promise<readonly Image[]> {
    const owner = await this.projectId();
    const filter = owner === undefined ? { visibility: 'private' } : { owner };
    const lists = await Promise.all([
      this.listImages(call, filter),
      this.listImages(call, { ...filter, os_hidden: 'true' }),
    ]);
    // An image that is hidden between the two calls can be in both.
    return [...new Map(lists.flat().map((image) => [image.id, image])).values()];
  }

  /** Rejects with `NotFoundError` if the image does not exist. */
  async getImage(id: string, call: Call): Promise<Image> {
    const request = get('image', `/images/${encodeURIComponent(id)}`);
    return readImage(await this.session.requestJson(request, call));
  }

  async createImage(image: JsonObject, call: Call): Promise<Image> {
    const request: ServiceRequest = {
      service: 'image',
      method: 'POST',
      operation: 'images',
      path: '/images',
      json: image,
    };
    return readImage(await this.session.requestJson(request, call));
  }

  /** Streams the data of an image and resolves when the cloud has it. `open` is called again if the call is retried. */
  async putData(id: string, bytes: number, open: () => Readable, timeoutMs: number, call: Call): Promise<void> {
    const path = `/images/${encodeURIComponent(id)}/file`;
    const data = { bytes, open };
    const request: ServiceRequest = { service: 'image', method: 'PUT', operation: 'image.file', path, data, timeoutMs };
    await this.session.requestReceipt(request, call);
  }

  async deleteImage(id: string, call: Call): Promise<void> {
    await this.session.delete('image', 'image', `/images/${encodeURIComponent(id)}`, call);
  }
}

function readImage(image: JsonObject): Image {
  const algorithm = stringAt(image, 'os_hash_algo');
  const value = stringAt(image, 'os_hash_value');
  return {
    id: requiredText(image, 'id', 'image: images'),
    name: stringAt(image, 'name') ?? '',
    status: requiredText(image, 'status', 'image: images'),
    size: numberAt(image, 'size'),
    checksum: stringAt(image, 'checksum'),
    hash: algorithm === undefined || value === undefined ? undefined : { algorithm, value },
    createdAt: stringAt(image, 'created_at') ?? '',
    properties: textValues(image),
  };
}

function get(operation: string, path: string): ServiceRequest {
  return { service: 'image', method: 'GET', operation, path };
}
