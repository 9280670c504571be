/** One call to a service, the routes of the services, and forms that their answers share. */

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
  /** Below the service, without the query. */
  readonly path: string;
  /** Address of the service, e.g. `http://127.0.0.1:20345/compute`. */
  readonly serviceUrl: string;
  /** How far listings are behind. */
  readonly lag: Lag;
}

/** A request with a token that is valid. */
export interface OwnedRequest extends OpenStackRequest {
  readonly caller: Caller;
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
  | (RouteFacts & { readonly public: true; handle(request: OpenStackRequest): Answer | Promise<Answer> })
  | (RouteFacts & { readonly public?: undefined; handle(request: OwnedRequest): Answer | Promise<Answer> });

/** A service of the cloud. */
export interface Service {
  readonly name: ServiceName;
  readonly routes: readonly Route[];
  /** Answer to a call with a token that is missing, wrong or expired. */
  unauthorized(): Answer;
  /** Answer to a path without a route; `known`: the path has a route with another method. */
  noRoute(known: boolean): Answer;
  /** An error of the service in its own form. */
  failure(status: number, message: string, headers?: Readonly<Record<string, string>>): Answer;
  /** Returns the headers of every answer. Throws for a call whose headers are invalid. */
  common?(request: OpenStackRequest): Readonly<Record<string, string>>;
}

export function json(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): Answer {
  return { status, body, headers };
}

/** Returns the body as a JSON object. Throws `malformed()` if it is none. */
export const bodyOf: (request: OpenStackRequest, malformed: () => ApiError) => JsonObject = jsonObjectIn;

/** An object inside of a body, e.g. `server` of `{"server": {…}}`; `malformed` when it is none. */
export function memberOf(body: JsonObject, key: string, malformed: () => ApiError): JsonObject {
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
