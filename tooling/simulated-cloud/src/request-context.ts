/** A call as its handler receives it, the answer, and the route between them. */

import type { IncomingHttpHeaders } from 'node:http';
import { isJsonObject, type JsonObject } from '@nodepool/core';
import type { VendorFault } from './faults.js';

export interface RequestContext<F extends VendorFault = VendorFault> {
  /** Name of the route; undefined if none fits the call. */
  readonly operation: string | undefined;
  readonly method: string;
  /** Address with the query, e.g. for links to further pages. */
  readonly url: URL;
  readonly query: URLSearchParams;
  /** Decoded parameters of the path. */
  readonly params: Readonly<Record<string, string>>;
  readonly headers: IncomingHttpHeaders;
  /** Empty for routes that take the stream. */
  readonly body: Buffer;
  readonly stream: AsyncIterable<Uint8Array>;
  /** Faults that hit this call. */
  readonly faults: readonly F[];
  /** Aborted when the cloud is closed. */
  readonly signal: AbortSignal;
}

export interface Answer {
  readonly status: number;
  /** Text and bytes are sent as they are, any other value as JSON. Default: no body. */
  readonly body?: unknown;
  /** Content-Type. Default: the vendor's type of JSON if there is a body. */
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Route<F extends VendorFault = VendorFault> {
  /** Name in fault plans and call logs, e.g. `instances.insert`. */
  readonly operation: string;
  readonly method: string;
  /** e.g. `/v2.1/servers/:id`. */
  readonly path: string;
  /** The handler reads the stream; else the body is read before. */
  readonly streams?: boolean;
  handle(context: RequestContext<F>): Answer | Promise<Answer>;
}

/** Thrown by a handler: the call is answered with an error in the form of the vendor. */
export class ApiError extends Error {
  constructor(
    readonly answer: Answer,
    message = `HTTP ${answer.status}: ${String(answer.body)}`,
  ) {
    super(message);
    this.name = 'ApiError';
  }
}

/** Returns the body as a JSON object. Throws `malformed()` if it is none. */
export function jsonObjectIn({ body }: Pick<RequestContext, 'body'>, malformed: () => ApiError): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(body.toString('utf8'));
  } catch {
    throw malformed();
  }
  if (!isJsonObject(value)) throw malformed();
  return value;
}

/** Converts the path of a published operation, e.g. `/zones/{zone}`, to the path of a route: `/zones/:zone`. */
export function routePath(published: string): string {
  return published.replaceAll(/\{(\w+)\}/g, ':$1');
}
