/** glance: image v2. Its errors are HTML pages. */

import { isJsonObject, type JsonValue } from '@nodepool/core';
import type { OpenStackState } from '../cloud-state.js';
import { ApiError, type Answer } from '@nodepool/simulated-cloud';
import { bodyOf, htmlPage, json, titleOf, type OwnedRequest, type Service } from '../http/request-context.js';
import { pageOf } from '../http/page.js';
import { challenge } from '../identity/routes.js';
import { newestFirst } from '../table.js';
import type { ImageRecord, CloudImages } from './images.js';
import { readNewImage, SchemaViolation, setAttribute, viewOf } from './view.js';

const PATCH_TYPE = /^application\/openstack-images-v2\.[01]-json-patch$/;
const NO_CREDENTIALS =
  'This server could not verify that you are authorized to access the document you requested. Either you supplied the wrong credentials (e.g., bad password), or your browser does not understand how to supply the credentials required.';
/** Query parameters that are not filters. */
const NO_FILTERS = new Set(['limit', 'marker', 'sort', 'sort_key', 'sort_dir', 'member_status', 'os_hidden']);
const VERSIONS = ['2.15', '2.9', '2.7', '2.6', '2.5', '2.4', '2.3', '2.2', '2.1', '2.0'];

export function imageService(images: CloudImages, state: OpenStackState): Service {
  /** Returns the image of the path if the caller can see it; `missing` is the error message if not. */
  const imageOf = ({ params, caller }: OwnedRequest, missing = `No image found with ID ${params['id'] ?? ''}`) => {
    const image = images.visible(params['id'] ?? '', caller);
    if (image === undefined) throw apiError(404, missing);
    return image;
  };
  const ownImageOf = (request: OwnedRequest, missing?: string): ImageRecord => {
    const image = imageOf(request, missing);
    if (image.project !== request.caller.projectId && !request.caller.admin) {
      throw apiError(403, 'You do not own this image');
    }
    return image;
  };

  const list = (request: OwnedRequest): Answer => {
    const { caller, query, lag, path } = request;
    const { imagePageSize, pageLimit } = state.settings;
    const sorted = images
      .list(caller, lag)
      .filter((image) => image.hidden === wantsHidden(query) && passes(image, query))
      .sort(newestFirst);
    const page = pageOf(sorted, request, {
      defaultLimit: imagePageSize,
      maxLimit: pageLimit,
      unknownMarker: (marker) => apiError(400, `No image found with ID ${marker}`),
    });
    const asked = query.size === 0 ? '' : `?${firstPage(query)}`;
    return json(200, {
      images: page.items.map(viewOf),
      first: path + asked,
      schema: '/v2/schemas/images',
      ...(page.next === undefined ? {} : { next: `${path}?${page.next}` }),
    });
  };

  const create = (request: OwnedRequest): Answer => {
    const body = bodyOf(request, () => apiError(400, 'Malformed JSON in request body.'));
    const spec = valid(() => readNewImage(body));
    if (spec.visibility === 'public' && !request.caller.admin) {
      throw apiError(403, 'You are not authorized to complete publicize_image action.');
    }
    if (spec.id !== undefined && images.table.get(spec.id) !== undefined) {
      throw apiError(409, `Image ID ${spec.id} already exists!`);
    }
    const image = images.create(spec, request.caller.projectId);
    return json(201, viewOf(image), {
      Location: `${request.serviceUrl}/v2/images/${image.id}`,
      'Openstack-Image-Import-Methods': 'glance-direct',
    });
  };

  const patch = (request: OwnedRequest): Answer => {
    if (!PATCH_TYPE.test(request.headers['content-type'] ?? '')) throw wrongType(request);
    const image = ownImageOf(request);
    for (const change of patchOf(request.body.toString('utf8'))) {
      const key = change.path.slice(1).replaceAll('~1', '/').replaceAll('~0', '~');
      const exists = key in viewOf(image);
      if (change.op !== 'add' && !exists) throw apiError(409, `Property ${key} does not exist.`);
      if (change.op === 'remove') image.properties.delete(key);
      else valid(() => setAttribute(image, key, change.value));
    }
    images.touch(image);
    return json(200, viewOf(image));
  };

  const upload = async (request: OwnedRequest): Promise<Answer> => {
    if (request.headers['content-type'] !== 'application/octet-stream') throw wrongType(request);
    const image = ownImageOf(request);
    if (image.status !== 'queued') {
      throw apiError(409, `Image status transition from ${image.status} to saving is not allowed`);
    }
    if (image.diskFormat === null || image.containerFormat === null) {
      throw apiError(400, 'Properties disk_format, container_format must be set prior to saving data.');
    }
    await images.receive(image, request.stream);
    if (images.table.get(image.id) !== image) throw apiError(410, `Image ${image.id} was deleted during the upload`);
    return { status: 204, type: 'text/html; charset=UTF-8' };
  };

  const download = (request: OwnedRequest): Answer => {
    const image = imageOf(request);
    if (image.data === undefined || image.md5 === null) return { status: 204 };
    return {
      status: 200,
      type: 'application/octet-stream',
      body: image.data,
      headers: { 'Content-Md5': image.md5 },
    };
  };

  const remove = (request: OwnedRequest): Answer => {
    const image = ownImageOf(request, `Failed to find image ${request.params['id'] ?? ''} to delete`);
    if (image.protected) throw apiError(403, `Image ${image.id} is protected and cannot be deleted.`);
    images.delete(image.id);
    return { status: 204, type: 'text/html; charset=UTF-8' };
  };

  return {
    name: 'image',
    unauthorized: () => ({ ...page(401, NO_CREDENTIALS), headers: challenge(state.authUrl) }),
    failure: (status, message, headers = {}) => ({ ...page(status, message), headers }),
    noRoute: (known) => (known ? page(405, 'The method is not allowed for this resource.') : page(404, '')),
    routes: [
      ...(['/', '/versions'] as const).map((path) => ({
        method: 'GET',
        path,
        operation: 'versions',
        public: true as const,
        handle: ({ serviceUrl }: { readonly serviceUrl: string }) =>
          json(path === '/' ? 300 : 200, { versions: VERSIONS.map((id, index) => version(id, index, serviceUrl)) }),
      })),
      { method: 'GET', path: '/v2/images', operation: 'images.list', handle: list },
      { method: 'POST', path: '/v2/images', operation: 'images.create', handle: create },
      {
        method: 'GET',
        path: '/v2/images/:id',
        operation: 'images.show',
        handle: (request) => json(200, viewOf(imageOf(request))),
      },
      { method: 'PATCH', path: '/v2/images/:id', operation: 'images.update', handle: patch },
      { method: 'DELETE', path: '/v2/images/:id', operation: 'images.delete', handle: remove },
      { method: 'PUT', path: '/v2/images/:id/file', operation: 'images.upload', streams: true, handle: upload },
      { method: 'GET', path: '/v2/images/:id/file', operation: 'images.download', handle: download },
    ],
  };
}

function version(id: string, index: number, serviceUrl: string): object {
  const status = index === 0 ? 'CURRENT' : 'SUPPORTED';
  return { id: `v${id}`, status, links: [{ rel: 'self', href: `${serviceUrl}/v2/` }] };
}

interface Change {
  readonly op: string;
  readonly path: string;
  readonly value: JsonValue;
}

function patchOf(text: string): readonly Change[] {
  let changes: unknown;
  try {
    changes = JSON.parse(text);
  } catch {
    throw apiError(400, 'Malformed JSON in request body.');
  }
  if (!Array.isArray(changes)) throw apiError(400, 'Request body must be a JSON array of operation objects.');
  return changes.map((change: unknown) => {
    if (!isJsonObject(change)) throw apiError(400, 'Operations must be JSON objects.');
    const { op, path, value = null } = change;
    if ((op !== 'add' && op !== 'replace' && op !== 'remove') || typeof path !== 'string') {
      throw apiError(400, 'Operations must have a member called "op" and one called "path".');
    }
    return { op, path, value };
  });
}

/** Returns true if an image matches the filters of a listing: attributes, tags, properties. */
function passes(image: ImageRecord, query: URLSearchParams): boolean {
  const view = viewOf(image);
  for (const [key, wanted] of query) {
    if (NO_FILTERS.has(key)) continue;
    if (key === 'tag') {
      if (!image.tags.includes(wanted)) return false;
    } else if (key === 'name' || key === 'id' || key === 'status') {
      const allowed = wanted.startsWith('in:') ? wanted.slice(3).split(',') : [wanted];
      if (!allowed.includes(String(view[key]))) return false;
    } else if (String(view[key]) !== wanted) return false;
  }
  return true;
}

/** Hidden images are listed only on request, and then alone. */
function wantsHidden(query: URLSearchParams): boolean {
  const wanted = (query.get('os_hidden') ?? 'false').toLowerCase();
  if (wanted === 'true' || wanted === 'false') return wanted === 'true';
  throw apiError(400, `Invalid value '${wanted}' for 'os_hidden' filter. Valid values are 'true' or 'false'.`);
}

/** Returns the query without the marker. */
function firstPage(query: URLSearchParams): string {
  const first = new URLSearchParams(query);
  first.delete('marker');
  return first.toString();
}

function valid<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof SchemaViolation) throw apiError(400, error.message);
    throw error;
  }
}

function wrongType({ headers }: OwnedRequest): ApiError {
  return apiError(415, `The request media type ${headers['content-type'] ?? ''} is not supported by this server.`);
}

function apiError(status: number, message: string): ApiError {
  return new ApiError(page(status, message));
}

function page(status: number, message: string): Answer {
  const escaped = message.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  return htmlPage(status, titleOf(status), escaped.replaceAll("'", '&#x27;'));
}
