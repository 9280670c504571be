/** Common features of neutron's collections: filtered and paginated lists, single resources, and tags. */

import { isJsonObject } from '@nodepool/core';
import type { OpenStackState } from '../cloud-state.js';
import type { Answer } from '@nodepool/simulated-cloud';
import { bodyOf, json, type Caller, type OwnedRequest, type Route } from '../http/request-context.js';
import { pageOf } from '../http/page.js';
import type { Table } from '../table.js';
import { networkError } from './errors.js';
import { isOf } from './networks.js';
import type { Standard } from './records.js';
import type { View } from './views.js';

export interface Collection<R extends Standard> {
  /** Plural in paths, e.g. `security-groups`; listings use underscores instead of dashes. */
  readonly plural: string;
  /** Key of a single resource. */
  readonly singular: string;
  /** Name in operations, e.g. `floating-ips`. */
  readonly operation: string;
  readonly table: Table<R>;
  readonly view: (record: R) => View;
  /** Returns type and message of the error for a missing resource. */
  readonly missing: (id: string) => readonly [type: string, message: string];
  /** Returns true if the caller can see a resource of another project. */
  readonly alsoVisible?: (record: R, caller: Caller) => boolean;
}

/** Query parameters that are not filters. */
const NO_FILTERS = new Set(['fields', 'limit', 'marker', 'page_reverse', 'sort_key', 'sort_dir', 'tags']);

export class CollectionRoutes<R extends Standard> {
  constructor(
    private readonly collection: Collection<R>,
    private readonly state: OpenStackState,
    private readonly touch: (record: Standard) => void,
  ) {}

  /** Returns the resource of the path if the caller may change it. */
  own(request: OwnedRequest): R {
    return this.ownById(request.params['id'] ?? '', request.caller);
  }

  ownById(id: string, caller: Caller): R {
    const record = this.collection.table.get(id);
    if (record === undefined || !isOf(record, caller)) throw this.missing(id);
    return record;
  }

  /** Returns a resource that the caller can see. */
  visibleById(id: string, caller: Caller): R {
    const record = this.collection.table.get(id);
    if (record === undefined || !this.maySee(record, caller)) throw this.missing(id);
    return record;
  }

  /** Returns an answer such as `{"port": {…}}`. */
  one(status: number, record: R): Answer {
    return json(status, { [this.collection.singular]: this.collection.view(record) });
  }

  /** Returns the routes that list and show resources and set tags. */
  reading(): Route[] {
    const { plural, operation } = this.collection;
    const path = `/v2.0/${plural}`;
    return [
      { method: 'GET', path, operation: `${operation}.list`, handle: (request) => this.list(request) },
      {
        method: 'GET',
        path: `${path}/:id`,
        operation: `${operation}.show`,
        handle: (request) => this.one(200, this.visibleById(request.params['id'] ?? '', request.caller)),
      },
      {
        method: 'PUT',
        path: `${path}/:id/tags`,
        operation: `${operation}.set-tags`,
        handle: (request) => {
          const { tags } = bodyOf(request, malformed);
          if (!Array.isArray(tags)) throw malformed();
          return this.setTags(this.own(request), tags.map(String));
        },
      },
      {
        method: 'PUT',
        path: `${path}/:id/tags/:tag`,
        operation: `${operation}.add-tag`,
        handle: (request) => {
          const record = this.own(request);
          this.setTags(record, [...record.tags, request.params['tag'] ?? '']);
          return { status: 201 };
        },
      },
    ];
  }

  private setTags(record: R, tags: readonly string[]): Answer {
    record.tags = [...new Set(tags)];
    this.touch(record);
    return json(200, { tags: record.tags });
  }

  private list(request: OwnedRequest): Answer {
    const { table, view } = this.collection;
    const plural = this.collection.plural.replaceAll('-', '_');
    const { caller, query, lag, serviceUrl, path } = request;
    if (query.getAll('sort_key').length !== query.getAll('sort_dir').length) {
      throw networkError(400, 'HTTPBadRequest', 'The number of sort_keys and sort_dirs must be same');
    }
    const shown = table
      .seen(this.state.clock.now(), lag)
      .filter((record) => this.maySee(record, caller))
      .sort((a, b) => (a.id < b.id ? -1 : 1))
      .map((record) => ({ id: record.id, view: view(record) }))
      .filter((entry) => passes(entry.view, query));
    // A limit of 0 means no limit.
    const limit = Number(query.get('limit') ?? 0);
    const { pageLimit } = this.state.settings;
    const page = pageOf(shown, limit === 0 ? withoutLimit(request) : request, {
      defaultLimit: limit === 0 ? Infinity : limit,
      maxLimit: limit === 0 ? Infinity : pageLimit,
      unknownMarker: (marker) => this.missing(marker),
    });
    const fields = query.getAll('fields');
    const marker = page.items.at(0)?.id ?? '';
    const href = `${serviceUrl}${path}?`;
    const previous = `${href}${withMarker(query, marker)}&page_reverse=True`;
    return json(200, {
      [plural]: page.items.map((entry) => narrowed(entry.view, fields)),
      ...(limit === 0 || page.next === undefined
        ? {}
        : {
            [`${plural}_links`]: [
              { rel: 'next', href: href + page.next },
              { rel: 'previous', href: previous },
            ],
          }),
    });
  }

  private maySee(record: R, caller: Caller): boolean {
    return isOf(record, caller) || this.collection.alsoVisible?.(record, caller) === true;
  }

  private missing(id: string): Error {
    const [type, message] = this.collection.missing(id);
    return networkError(404, type, message);
  }
}

export function malformed(): Error & { readonly answer: Answer } {
  return networkError(400, 'HTTPBadRequest', 'Failed to parse request.');
}

/** Returns true if each filtered attribute has one of the requested values. Unknown attributes are ignored. */
function passes(view: View, query: URLSearchParams): boolean {
  const tags = view['tags'];
  const wantedTags = query.get('tags')?.split(',') ?? [];
  if (!wantedTags.every((tag) => Array.isArray(tags) && tags.includes(tag))) return false;
  for (const key of new Set(query.keys())) {
    if (NO_FILTERS.has(key)) continue;
    if (key === 'fixed_ips') {
      if (!query.getAll(key).every((condition) => hasFixedIp(view, condition))) return false;
    } else if (key in view && !query.getAll(key).some((wanted) => same(view[key], wanted))) return false;
  }
  return true;
}

/** Matches `ip_address=10.0.0.3` or `subnet_id=…`. */
function hasFixedIp(view: View, condition: string): boolean {
  const [key = '', wanted] = condition.split('=');
  const addresses = view['fixed_ips'];
  return Array.isArray(addresses) && addresses.some((address) => isJsonObject(address) && address[key] === wanted);
}

function same(value: unknown, wanted: string): boolean {
  if (typeof value === 'boolean') return String(value) === wanted.toLowerCase();
  if (value === null) return wanted === '';
  return (typeof value === 'string' || typeof value === 'number') && String(value) === wanted;
}

function narrowed(view: View, fields: readonly string[]): View {
  if (fields.length === 0) return view;
  return Object.fromEntries(Object.entries(view).filter(([key]) => fields.includes(key)));
}

function withoutLimit(request: OwnedRequest): OwnedRequest {
  const query = new URLSearchParams(request.query);
  query.delete('limit');
  return { ...request, query };
}

function withMarker(query: URLSearchParams, marker: string): string {
  const copy = new URLSearchParams(query);
  copy.delete('marker');
  copy.append('marker', marker);
  return copy.toString();
}
