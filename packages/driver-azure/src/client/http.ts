/** Microsoft's HTTP client with bounded answers and with the redirects of core instead of those of the library. */

import type { HttpClient, PipelineOptions, PipelineResponse, TlsSettings } from '@azure/core-rest-pipeline';
import { answerText, type HttpExchange } from '@nodepool/core';
import { loadPipeline } from './libraries.js';

/** Every status: the library would otherwise collect an answer of any size. */
const ALL_STATUSES: ReadonlySet<number> = new Set([Infinity]);

/** Returns a client that sends requests as messages of one call. */
export function clientOf(client: HttpClient, http: HttpExchange): HttpClient {
  return {
    sendRequest: (request) =>
      http.send(request.url, { method: request.method }, async (url) => {
        request.url = url;
        request.streamResponseStatusCodes = new Set(ALL_STATUSES);
        const answer: PipelineResponse = await client.sendRequest(request);
        const { status, headers } = answer;
        const body: unknown = answer.readableStreamBody;
        return { request, status, headers, bodyAsText: await answerText(isStream(body) ? body : null) };
      }),
  };
}

function isStream(body: unknown): body is AsyncIterable<unknown> {
  return typeof body === 'object' && body !== null && Symbol.asyncIterator in body;
}

/** Returns the options of pipelines that neither repeat requests nor follow redirects. */
export function pipelineOptions(tls: TlsSettings | undefined): PipelineOptions {
  return {
    retryOptions: { maxRetries: 0 },
    redirectOptions: { maxRetries: 0 },
    ...(tls === undefined ? {} : { tlsOptions: tls }),
  };
}

export function newHttpClient(): HttpClient {
  return loadPipeline().createDefaultHttpClient();
}
