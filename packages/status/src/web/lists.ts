/**
 * `/node-list`, `/request-list`, `/label-list`, `/image-list`, `/dib-image-list` and `/image-status`: the lists of the
 * command line, as JSON or as a text table, with `?fields=a,b`. Answers are cached for a second. Field names and table
 * headers are those of the Python Nodepool.
 */

import { answerFormat, BadQueryError, type HttpReply, type HttpRequest, type Route } from '@nodepool/daemon/web';
import {
  dibImageList,
  imageList,
  imageStatus,
  labelList,
  nodeList,
  requestList,
  toJsonObjects,
  toTable,
  UnknownFieldError,
  type ColumnChoice,
  type RecordList,
} from '@nodepool/store';
import { AnswerCache } from './answer-cache.js';
import type { WebContext, WebRoutes } from './context.js';

const LIFE_SECONDS = 1;
const MAX_ANSWERS = 8;
const MAX_FIELDS_LENGTH = 500;

type Query = HttpRequest['query'];

interface List {
  readonly path: string;
  /** Columns of the text table without `fields`: those of the Python Nodepool. JSON may have further fields. */
  readonly textColumns: 'short' | 'all';
  /** Query parameters other than `fields`. */
  readonly parameters: readonly string[];
  make(context: WebContext, columns: ColumnChoice, query: Query): RecordList;
}

const LISTS: readonly List[] = [
  {
    path: '/node-list',
    textColumns: 'all',
    parameters: ['node_id'],
    make: ({ store, clock }, columns, query) =>
      nodeList(store.nodes, { columns, now: clock.now(), nodeId: single(query, 'node_id') }),
  },
  {
    path: '/request-list',
    textColumns: 'short',
    parameters: [],
    make: ({ store, clock }, columns) => requestList(store.requests, { columns, now: clock.now() }),
  },
  {
    path: '/label-list',
    textColumns: 'short',
    parameters: [],
    make: ({ store }, columns) => labelList(store.components, { columns }),
  },
  {
    path: '/image-list',
    textColumns: 'short',
    parameters: [],
    make: ({ store, clock }, columns) => imageList(store.images, { columns, now: clock.now() }),
  },
  {
    path: '/dib-image-list',
    textColumns: 'short',
    parameters: [],
    make: ({ store, clock }, columns) => dibImageList(store.images, { columns, now: clock.now() }),
  },
  {
    path: '/image-status',
    textColumns: 'short',
    parameters: [],
    make: ({ store, clock }, columns) => imageStatus(store.images, { columns, now: clock.now() }),
  },
];

export const listRoutes: WebRoutes = (app, context) => {
  const cache = new AnswerCache(context.clock, LIFE_SECONDS * 1000, MAX_ANSWERS);
  app.addHook('onClose', (_app, done) => {
    cache.clear();
    done();
  });
  for (const list of LISTS) {
    app.get<Route>(list.path, (request, reply) => answer(list, context, cache, request, reply));
  }
};

function answer(
  list: List,
  context: WebContext,
  cache: AnswerCache,
  request: HttpRequest,
  reply: HttpReply,
): HttpReply {
  const { query } = request;
  const format = answerFormat(request.headers.accept);
  const columns = fieldsOf(query) ?? (format === 'json' ? 'all' : list.textColumns);
  const question = JSON.stringify([list.path, format, columns, list.parameters.map((name) => single(query, name))]);
  const { made, body } = cache.get(question, () => {
    const listing = makeList(list, context, columns, query);
    return format === 'json' ? JSON.stringify(toJsonObjects(listing)) : `${toTable(listing)}\n`;
  });
  void reply.headers({
    'Access-Control-Allow-Origin': '*',
    'Cache-Control': `public, max-age=${LIFE_SECONDS}`,
    'Last-Modified': new Date(made).toUTCString(),
    Expires: new Date(made + LIFE_SECONDS * 1000).toUTCString(),
    Vary: 'Accept',
  });
  if (isUnmodified(request.headers['if-modified-since'], made)) return reply.code(304).send();
  return reply.type(format === 'json' ? 'application/json' : 'text/plain; charset=UTF-8').send(body);
}

function makeList(list: List, context: WebContext, columns: ColumnChoice, query: Query): RecordList {
  try {
    return list.make(context, columns, query);
  } catch (error) {
    if (error instanceof UnknownFieldError) throw new BadQueryError(`fields: ${error.message}`);
    throw error;
  }
}

/** Returns the requested fields; undefined if the query does not specify any. */
function fieldsOf(query: Query): readonly string[] | undefined {
  const fields = single(query, 'fields');
  if (fields === undefined) return undefined;
  if (fields.length > MAX_FIELDS_LENGTH) throw new BadQueryError(`fields: longer than ${MAX_FIELDS_LENGTH} characters`);
  return [...new Set(fields.split(',').map((field) => field.trim()))].sort();
}

/** Returns a query parameter that must not occur more than once; an empty one counts as absent. */
function single(query: Query, name: string): string | undefined {
  const value = query[name];
  if (value === undefined || value === '') return undefined;
  if (typeof value === 'string') return value;
  throw new BadQueryError(`${name}: given more than once; give it once, with commas between several values`);
}

/** Compares whole seconds, the resolution of HTTP dates. */
function isUnmodified(since: string | undefined, made: number): boolean {
  if (since === undefined) return false;
  const time = Date.parse(since);
  return !Number.isNaN(time) && Math.floor(made / 1000) * 1000 <= time;
}
