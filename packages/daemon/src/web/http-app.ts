import type { FastifyReply, FastifyRequest } from 'fastify';

/** The values of a request that routes read. */
export interface Route {
  Querystring: Readonly<Record<string, unknown>>;
  /** The variable parts of the path; `*` is the rest of it. */
  Params: Readonly<Record<string, string>>;
}

export type HttpRequest = FastifyRequest<Route>;
export type HttpReply = FastifyReply;
export type { FastifyInstance as HttpApp } from 'fastify';
