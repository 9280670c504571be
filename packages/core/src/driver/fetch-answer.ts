/** A transport on the platform's `fetch`, for clouds with an API of JSON over HTTP. */

import { Readable } from 'node:stream';
import type { JsonValue } from '../model/json.js';
import type { Attempt } from './api-request.js';
import { answerText } from './http-exchange.js';

/** Maximum length of a foreign text in messages (characters). */
const MAX_TEXT = 100;

export interface FetchRequest {
  readonly url: string;
  /** Default: `GET`. */
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly json?: unknown;
  /** Opens data of another type, again for each message of the call. */
  readonly data?: () => Readable;
  /** Maximum size of the answer (bytes). Default: 32 MiB. */
  readonly maxBytes?: number;
  /** Sends each message. Default: the platform's `fetch`. */
  readonly fetch?: typeof globalThis.fetch;
}

/** A complete answer. */
export interface FetchedAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The JSON of the answer; undefined if it is empty or not JSON. */
  readonly json: JsonValue | undefined;
}

/** An answer with a status of 400 or more. */
export class ErrorStatus extends Error {
  constructor(readonly answer: FetchedAnswer) {
    super(`status ${answer.status}`);
    this.name = 'ErrorStatus';
  }
}

/**
 * Sends a request of a call. Follows redirects within the same host, and reads a bounded answer. Throws `ErrorStatus`
 * for an answer with an error, and the errors of `fetch`; `errorOf` of the client converts both.
 */
export async function fetchAnswer(
  { url, method = 'GET', headers, json, data, maxBytes, fetch = globalThis.fetch }: FetchRequest,
  { http, signal }: Pick<Attempt, 'http' | 'signal'>,
): Promise<FetchedAnswer> {
  const response = await http.send(url, { method }, async (at) => {
    const type = json === undefined ? undefined : { 'content-type': 'application/json' };
    const sent = await fetch(at, {
      ...{ method, signal, redirect: 'manual', headers: { accept: 'application/json', ...type, ...headers } },
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
      ...(data === undefined ? {} : { body: Readable.toWeb(data()), duplex: 'half' }),
    });
    if (sent.status >= 300 && sent.status < 400) await sent.body?.cancel();
    return sent;
  });
  const text = await answerText(response.body, { maxBytes, signal });
  const answer = { status: response.status, headers: response.headers, text, json: parsed(text) };
  if (answer.status >= 400) throw new ErrorStatus(answer);
  return answer;
}

/**
 * Returns the reason if an answer is neither empty nor JSON, as the page of a proxy. A proxy can also answer with an
 * empty text or with JSON: check a header or a property that all answers of your cloud have.
 */
export function notJson({ text, json }: FetchedAnswer): string | undefined {
  if (json !== undefined || text === '') return undefined;
  return `the answer is not JSON: ${text.replace(/\s+/g, ' ').trim().slice(0, MAX_TEXT)}`;
}

function parsed(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}
