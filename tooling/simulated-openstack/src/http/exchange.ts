/** One call to a service, what comes back, and how a service refuses. */

import type { IncomingMessage } from 'node:http';
import { isJsonObject, type JsonObject, type JsonValue } from '@nodepool/core';
import type { ServiceName } from '../services.js';
import type { Lag } from '../table.js';

/** Who calls, as the token says. */
export interface Caller {
  readonly userId: string;
  readonly userName: string;
  readonly projectId: string;
  readonly projectName: string;
  readonly admin: boolean;
  readonly token: string;
}

export interface Exchange {
  readonly method: string;
  /** Below the service, without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage['headers'];
  /** From the path. */
  readonly params: Readonly<Record<string, string>>;
  /** Address of the service, e.g. `http://127.0.0.1:20345/compute`. */
  readonly serviceUrl: string;
  /** How far listings are behind. */
  readonly lag: Lag;
  /** What was sent; empty for routes that read the stream. */
  readonly body: string;
  readonly stream: AsyncIterable<Uint8Array>;
}

/** An exchange with a token that is valid. */
export interface OwnedExchange extends Exchange {
  readonly caller: Caller;
}

export interface Answer {
  readonly status: number;
  /** Default: none. */
  readonly body?: string | Buffer;
  /** Content-Type. Default `application/json`, where there is a body. */
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

interface RouteFacts {
  readonly method: string;
  /** e.g. `/v2.1/servers/:id`. */
  readonly path: string;
  /** e.g. `servers.show`; the service's name goes in front. */
  readonly operation: string;
  /** The handler reads the stream; else the body is read before. */
  readonly streams?: true;
}

/** `public`: needs no token. */
export type Route =
  | (RouteFacts & { readonly public: true; handle(exchange: Exchange): Answer | Promise<Answer> })
  | (RouteFacts & { readonly public?: undefined; handle(exchange: OwnedExchange): Answer | Promise<Answer> });

/** A service, as the server serves it. */
export interface Service {
  readonly name: ServiceName;
  readonly routes: readonly Route[];
  /** Answer to a call with a token that is missing, wrong or expired. */
  unauthorized(): Answer;
  /** Answer to a path that nothing answers; `known`: with this method only. */
  noRoute(known: boolean): Answer;
  /** An error of the service in its own form. */
  failure(status: number, message: string, headers?: Readonly<Record<string, string>>): Answer;
  /** Refuses a call for what its headers say, and gives those that every answer has. */
  common?(exchange: Exchange): Readonly<Record<string, string>>;
}

/** Thrown by a handler: the answer is a refusal. */
export class Refusal extends Error {
  constructor(readonly answer: Answer) {
    super(`HTTP ${answer.status}: ${String(answer.body)}`);
    this.name = 'Refusal';
  }
}

export function json(status: number, value: unknown, headers: Readonly<Record<string, string>> = {}): Answer {
  return { status, body: JSON.stringify(value), headers };
}

/** The body as a JSON object; `malformed` when it is none. */
export function bodyOf(exchange: Exchange, malformed: () => Refusal): JsonObject {
  const value = parsed(exchange.body);
  if (!isJsonObject(value)) throw malformed();
  return value;
}

function parsed(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}

/** An object inside of a body, e.g. `server` of `{"server": {…}}`; `malformed` when it is none. */
export function memberOf(body: JsonObject, key: string, malformed: () => Refusal): JsonObject {
  const value = body[key];
  if (!isJsonObject(value)) throw malformed();
  return value;
}

/** A text, or the default where there is none. */
export function textOf(value: JsonValue | undefined, otherwise: string): string {
  return typeof value === 'string' ? value : otherwise;
}

/** A page as WebOb, which glance and a part of nova and cinder use, writes errors. */
export function htmlPage(status: number, title: string, message: string): Answer {
  const heading = `${status} ${title}`;
  return {
    status,
    type: 'text/html; charset=UTF-8',
    body: `<html>\n <head>\n  <title>${heading}</title>\n </head>\n <body>\n  <h1>${heading}</h1>\n  ${message}<br /><br />\n\n\n\n </body>\n</html>`,
  };
}

export const STATUS_TITLES: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  406: 'Not Acceptable',
  409: 'Conflict',
  413: 'Request Entity Too Large',
  415: 'Unsupported Media Type',
  429: 'Too Many Requests',
  500: 'Internal Server Error',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
};

export function titleOf(status: number): string {
  return STATUS_TITLES[status] ?? 'Error';
}
