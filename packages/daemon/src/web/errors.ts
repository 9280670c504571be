import type { Logger } from '@nodepool/core';
import type { HttpReply, HttpRequest } from './http-app.js';
import { answerFormat } from './negotiate.js';

/** The query of a request is invalid; answered with status 400 and the message. */
export class BadQueryError extends Error {
  readonly statusCode = 400;
  constructor(message: string) {
    super(message);
    this.name = 'BadQueryError';
  }
}

/** Answers with an error message, as JSON or as text. */
export function sendError(
  request: Pick<HttpRequest, 'headers'>,
  reply: HttpReply,
  status: number,
  message: string,
): HttpReply {
  void reply.code(status).header('Access-Control-Allow-Origin', '*');
  if (answerFormat(request.headers.accept) === 'json') return reply.send({ statusCode: status, message });
  return reply.type('text/plain; charset=UTF-8').send(`${message}\n`);
}

/** Creates the error handler: errors of the client are answered with their message, internal errors are logged. */
export function errorHandler(
  log: Logger,
): (error: unknown, request: Pick<HttpRequest, 'headers' | 'method' | 'url'>, reply: HttpReply) => HttpReply {
  return (error, request, reply) => {
    const status = statusOf(error);
    if (status < 500) return sendError(request, reply, status, error instanceof Error ? error.message : 'bad request');
    log.error('A web request failed', error, { method: request.method, path: request.url.slice(0, 200) });
    return sendError(request, reply, 500, 'internal error; see the log');
  };
}

function statusOf(error: unknown): number {
  if (typeof error !== 'object' || error === null || !('statusCode' in error)) return 500;
  const { statusCode } = error;
  return typeof statusCode === 'number' && statusCode >= 400 && statusCode < 600 ? statusCode : 500;
}
