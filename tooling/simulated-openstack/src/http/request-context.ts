/** A call to a service, the routes of the services, and common answer formats. */

import { isJsonObject, type JsonObject, type JsonValue } from '@nodepool/core';
import { jsonObjectIn, type Answer, type ApiError, type RequestContext } from '@nodepool/simulated-cloud';
import type { CallFault } from '../faults.js';
import type { ServiceName } from '../services.js';
import type { Lag } from '../table.js';

/** The caller of a valid token. */
export interface Caller {
  readonly userId: string;
  readonly userName: string;
  readonly projectId: string;
  readonly projectName: string;
  readonly admin: boolean;
  readonly token: string;
}

export interface OpenStackRequest extends RequestContext<CallFault> {
  /** Relative to the service, without the query. */
  readonly path: string;
  /** URL of the service, e.g. `http://127.0.0.1:20345/compute`. */
  readonly serviceUrl: string;
  /** Lag of listings. */
  readonly lag: Lag;
}

/** A request with a valid token. */
export interface OwnedRequest extends OpenStackRequest {
  readonly caller: Caller;
}

interface RouteFacts {
  readonly method: string;
  /** e.g. `/v2.1/servers/:id`. */
  readonly path: string;
  /** e.g. `servers.show`; the service's name is prepended. */
  readonly operation: string;
  /** If true, the handler reads the stream; else the body is read before. */
  readonly streams?: true;
}

/** `public` routes need no token. */
export type Route =
  | (RouteFacts & { readonly public: true; handle(request: OpenStackRequest): Answer | Promise<Answer> })
  | (RouteFacts & { readonly public?: undefined; handle(request: OwnedRequest): Answer | Promise<Answer> });

/** A service of the cloud. */
export interface Service {
  readonly name: ServiceName;
  readonly routes: readonly Route[];
  /** Returns the answer to a call with a missing, invalid or expired token. */
  unauthorized(): Answer;
  /** Returns the answer to a path without a route; `known` is true if the path has a route with another method. */
  noRoute(known: boolean): Answer;
  /** Returns an error in the service's format. */
  failure(status: number, message: string, headers?: Readonly<Record<string, string>>): Answer;
  /** Returns the headers of every answer. Throws for a call whose headers are invalid. */
  common?(request: OpenStackRequest): Readonly<Record<string, string>>;
}

export function json(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): Answer {
  return { status, body, headers };
}

/** Returns the body as a JSON object. Throws `malformed()` if it is none. */
export const bodyOf: (request: OpenStackRequest, malformed: () => ApiError) => JsonObject = jsonObjectIn;

/** Returns an object in a body, e.g. `server` of `{"server": {…}}`. Throws `malformed` if it is not an object. */
export function memberOf(body: JsonObject, key: string, malformed: () => ApiError): JsonObject {
  const value = body[key];
  if (!isJsonObject(value)) throw malformed();
  return value;
}

/** Returns a string, or the default if there is none. */
export function textOf(value: JsonValue | undefined, otherwise: string): string {
  return typeof value === 'string' ? value : otherwise;
}

/** Returns an error page in the format of WebOb, which glance and parts of nova and cinder use. */
export function htmlPage(status: number, title: string, message: string): Answer {
  const heading = `${status} ${title}`;
  return {
    status,
    type: 'text/html; charset=UTF-8',
    body: `<html>\n <head>\n  <title>${heading}</title>\n </head>\n <body>\n  <h1>${heading}</h1>\n  ${message}<br /><br />\n\n\n\n </body>\n</html>`,
  };
}

const STATUS_TITLES: Readonly<Record<number, string>> = {
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
