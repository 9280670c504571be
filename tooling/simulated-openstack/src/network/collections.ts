/** What all collections of neutron have in common: lists with filters, fields and pages, single resources, tags. */

import { isJsonObject } from '@nodepool/core';
import type { Ground } from '../ground.js';
import { bodyOf, json, type Answer, type Caller, type OwnedExchange, type Route } from '../http/exchange.js';
import { pageOf } from '../http/page.js';
import type { Table } from '../table.js';
import { networkRefusal } from './errors.js';
import { isOf } from './networks.js';
import type { Standard } from './records.js';
import type { View } from './views.js';

export interface Collection<R extends Standard> {
  /** In paths, e.g. `security-groups`; in listings its dashes are underscores. */
  readonly plural: string;
  /** Key of one resource. */
  readonly singular: string;
  /** As operations name it, e.g. `floating-ips`. */
  readonly operation: string;
  readonly table: Table<R>;
  readonly view: (record: R) => View;
  /** Type and message of the error for one that is not there. */
  readonly missing: (id: string) => readonly [type: string, message: string];
  /** Whether the caller sees it, beyond what is its own. */
  readonly alsoVisible?: (record: R, caller: Caller) => boolean;
}

/** Query parameters that are not filters. */
const NO_FILTERS = new Set(['fields', 'limit', 'marker', 'page_reverse', 'sort_key', 'sort_dir', 'tags']);

export class CollectionRoutes<R extends Standard> {
  constructor(
    private readonly collection: Collection<R>,
    private readonly ground: Ground,
    private readonly touch: (record: Standard) => void,
  ) {}

  /** The resource of the path, if the caller may change it. */
  own(exchange: OwnedExchange): R {
    return this.ownById(exchange.params['id'] ?? '', exchange.caller);
  }

  ownById(id: string, caller: Caller): R {
    const record = this.collection.table.get(id);
    if (record === undefined || !isOf(record, caller)) throw this.missing(id);
    return record;
  }

  /** A resource that the caller may see. */
  visibleById(id: string, caller: Caller): R {
    const record = this.collection.table.get(id);
    if (record === undefined || !this.maySee(record, caller)) throw this.missing(id);
    return record;
  }

  /** `{"port": {…}}`. */
  one(status: number, record: R): Answer {
    return json(status, { [this.collection.singular]: this.collection.view(record) });
  }

  /** Lists, shows, and sets tags. */
  reading(): Route[] {
    const { plural, operation } = this.collection;
    const path = `/v2.0/${plural}`;
    return [
      { method: 'GET', path, operation: `${operation}.list`, handle: (exchange) => this.list(exchange) },
      {
        method: 'GET',
        path: `${path}/:id`,
        operation: `${operation}.show`,
        handle: (exchange) => this.one(200, this.visibleById(exchange.params['id'] ?? '', exchange.caller)),
      },
      {
        method: 'PUT',
        path: `${path}/:id/tags`,
        operation: `${operation}.set-tags`,
        handle: (exchange) => {
          const { tags } = bodyOf(exchange, malformed);
          if (!Array.isArray(tags)) throw malformed();
          return this.setTags(this.own(exchange), tags.map(String));
        },
      },
      {
        method: 'PUT',
        path: `${path}/:id/tags/:tag`,
        operation: `${operation}.add-tag`,
        handle: (exchange) => {
          const record = this.own(exchange);
          this.setTags(record, [...record.tags, decodeURIComponent(exchange.params['tag'] ?? '')]);
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

  private list(exchange: OwnedExchange): Answer {
    const { table, view } = this.collection;
    const plural = this.collection.plural.replaceAll('-', '_');
    const { caller, query, lag, serviceUrl, path } = exchange;
    if (query.getAll('sort_key').length !== query.getAll('sort_dir').length) {
      throw networkRefusal(400, 'HTTPBadRequest', 'The number of sort_keys and sort_dirs must be same');
    }
    const shown = table
      .seen(this.ground.clock.now(), lag)
      .filter((record) => this.maySee(record, caller))
      .sort((a, b) => (a.id < b.id ? -1 : 1))
      .map((record) => ({ id: record.id, view: view(record) }))
      .filter((entry) => passes(entry.view, query));
    // A limit of 0 is none at all.
    const limit = Number(query.get('limit') ?? 0);
    const { pageLimit } = this.ground.settings();
    const page = pageOf(shown, limit === 0 ? withoutLimit(exchange) : exchange, {
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
    return networkRefusal(404, type, message);
  }
}

export function malformed(): Error & { readonly answer: Answer } {
  return networkRefusal(400, 'HTTPBadRequest', 'Failed to parse request.');
}

/** Attributes that were asked for have one of the values; those that neutron does not know are no filters. */
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

/** `ip_address=10.0.0.3` or `subnet_id=…`. */
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

function withoutLimit(exchange: OwnedExchange): OwnedExchange {
  const query = new URLSearchParams(exchange.query);
  query.delete('limit');
  return { ...exchange, query };
}

function withMarker(query: URLSearchParams, marker: string): string {
  const copy = new URLSearchParams(query);
  copy.delete('marker');
  copy.append('marker', marker);
  return copy.toString();
}
