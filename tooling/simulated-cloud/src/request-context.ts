/** A call as its handler receives it, its answer, and its route. */

import type { IncomingHttpHeaders } from 'node:http';
import { isJsonObject, type JsonObject } from '@nodepool/core';
import type { VendorFault } from './faults.js';

export interface RequestContext<F extends VendorFault = VendorFault> {
  /** Name of the route; undefined if none matches. */
  readonly operation: string | undefined;
  readonly method: string;
  /** URL with the query, e.g. for links to further pages. */
  readonly url: URL;
  readonly query: URLSearchParams;
  /** Decoded path parameters. */
  readonly params: Readonly<Record<string, string>>;
  readonly headers: IncomingHttpHeaders;
  /** Empty for routes that read the stream. */
  readonly body: Buffer;
  readonly stream: AsyncIterable<Uint8Array>;
  /** Faults of this call. */
  readonly faults: readonly F[];
  /** Aborted when the cloud closes. */
  readonly signal: AbortSignal;
  /** Returns a signal that aborts after the answer, or when the client disconnects before it. */
  readonly ended: () => AbortSignal;
}

export interface Answer {
  readonly status: number;
  /** Strings, bytes and streams are sent unchanged, any other value as JSON. Default: no body. */
  readonly body?: unknown;
  /** Content-Type. Default: the vendor's JSON type if there is a body. */
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Route<F extends VendorFault = VendorFault> {
  /** Name in fault plans and call logs, e.g. `instances.insert`. */
  readonly operation: string;
  readonly method: string;
  /** e.g. `/v2.1/servers/:id`. */
  readonly path: string;
  /** If true, the handler reads the stream; else the body is read before. */
  readonly streams?: boolean;
  handle(context: RequestContext<F>): Answer | Promise<Answer>;
}

/** An error that a handler throws to answer the call in the vendor's error format. */
export class ApiError extends Error {
  constructor(
    readonly answer: Answer,
    message = `HTTP ${answer.status}: ${String(answer.body)}`,
  ) {
    super(message);
    this.name = 'ApiError';
  }
}

/** Returns the body as a JSON object. Throws `malformed()` if it is not one. */
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
