/** The parts of the HTTP server that routes use; the published package contains the library as a bundle. */

import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import type { FastifyInstance } from 'fastify';

export interface HttpRequest {
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly query: Readonly<Record<string, unknown>>;
  /** The variable parts of the path; `*` is the rest of it. */
  readonly params: Readonly<Record<string, string>>;
}

export interface HttpReply {
  /** For streams, after `hijack`. */
  readonly raw: ServerResponse;
  code(status: number): HttpReply;
  type(contentType: string): HttpReply;
  header(name: string, value: string): HttpReply;
  headers(values: Readonly<Record<string, string>>): HttpReply;
  /** Sends text, bytes, or an object as JSON. */
  send(body?: string | Buffer | object): HttpReply;
  /** Leaves the answer to the caller, who writes it to `raw`. */
  hijack(): HttpReply;
}

export type HttpHandler = (request: HttpRequest, reply: HttpReply) => HttpReply | Promise<HttpReply>;

export interface HttpApp {
  /** Adds a route, for HEAD as well unless `exposeHeadRoute` is false. */
  get(path: string, handler: HttpHandler, options?: { readonly exposeHeadRoute: boolean }): void;
  /** Adds headers to all answers. */
  addHeaders(values: Readonly<Record<string, string>>): void;
  /** Calls `end` at the stop, before connections are closed. */
  beforeClose(end: () => void): void;
  /** Calls `end` once all connections are closed. */
  afterClose(end: () => void): void;
}

interface Route {
  Querystring: HttpRequest['query'];
  Params: HttpRequest['params'];
}

export function httpAppOf(app: FastifyInstance): HttpApp {
  return {
    get: (path, handler, options = { exposeHeadRoute: true }) => void app.get<Route>(path, options, handler),
    addHeaders: (values) =>
      void app.addHook('onRequest', (_request, reply, done) => {
        void reply.headers(values);
        done();
      }),
    beforeClose: (end) =>
      void app.addHook('preClose', (done) => {
        end();
        done();
      }),
    afterClose: (end) =>
      void app.addHook('onClose', (_app, done) => {
        end();
        done();
      }),
  };
}
