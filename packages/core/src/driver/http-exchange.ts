/** Rules for HTTP that hold for every client: redirects, the size of answers, and what messages say about an answer. */

import { TransientError, type DriverError } from './errors.js';
import { networkCauseOf } from './network-errors.js';
import { retryAfterMsIn, serverTime } from './retry-after.js';

/** Statuses of redirects that keep the method and the body, as OpenStack's and Kubernetes' own clients treat them. */
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 307, 308]);
const MAX_REDIRECTS = 5;
/** Default maximum size of an answer in bytes. */
const MAX_ANSWER_BYTES = 32 * 2 ** 20;
/** Maximum length of a header in messages (characters). */
const MAX_TYPE = 50;

/** Headers as clients present them: objects with a method `get`, or plain objects with names in lower case. */
export type AnswerHeaders =
  { get(name: string): string | null | undefined } | Readonly<Record<string, string | readonly string[] | undefined>>;

/** The part of an answer that the rules need. */
export interface AnswerHead {
  readonly status: number;
  readonly headers: AnswerHeaders;
}

export interface ExchangeOptions {
  /** GET requests have no effect, so that a refused redirect leaves nothing behind. */
  readonly method: string;
  /** Returns true for a status from 300 to 399 that is an answer of the API and no redirect. */
  readonly isAnswer?: (status: number, location: string | undefined) => boolean;
}

/** The HTTP messages of one call. Remembers the last answer, for messages and for dates in it. */
export class HttpExchange {
  /** Set if an answer was refused, whatever error a library makes of it. */
  refusal: DriverError | undefined;
  private url: URL | undefined;
  private answer: AnswerHead | undefined;
  /** Why the connection failed. */
  private reason: string | undefined;

  /** `name` names the call in messages. */
  constructor(private readonly name: string) {}

  /** Status of the last answer; undefined if there was none. */
  get status(): number | undefined {
    return this.answer?.status;
  }

  /** Origin of the last message, e.g. `https://api.example.org`; undefined if none was sent. */
  get origin(): string | undefined {
    return this.url?.origin;
  }

  /** Records an answer to a message that was not sent with `send`, e.g. by the SDK of a vendor. */
  answered(answer: AnswerHead): void {
    this.answer ??= answer;
  }

  /**
   * Sends a request, and sends it again to the address of a redirect, with the same method, body and headers. Follows
   * redirects to the same host only, and never from https to http, because the request contains credentials.
   */
  async send<A extends AnswerHead>(
    url: string,
    options: ExchangeOptions,
    send: (url: string) => Promise<A>,
  ): Promise<A> {
    const from = new URL(url);
    this.url = from;
    this.answer = undefined;
    for (let sent = 0; ; sent += 1) {
      const answer = await send(this.url.href).catch((error: unknown) => {
        // Libraries of vendors hide the reason from the errors of their logins.
        this.reason = networkCauseOf(error)?.message;
        throw error;
      });
      this.answer = answer;
      const { status } = answer;
      if (status < 300 || status > 399) return answer;
      if (options.isAnswer?.(status, headerIn(answer.headers, 'location')) === true) return answer;
      const problem = sent === MAX_REDIRECTS ? `${MAX_REDIRECTS} redirects in a row` : this.follow(answer);
      if (problem === undefined) continue;
      const outcome = options.method === 'GET' ? 'not-applied' : 'unknown';
      this.refusal = new TransientError(`${this.name}: ${from.host} answered with status ${status}: ${problem}`, {
        outcome,
      });
      throw this.refusal;
    }
  }

  /** Sets the address of the next request. Returns the reason if the redirect is refused. */
  private follow({ status, headers }: AnswerHead): string | undefined {
    const location = headerIn(headers, 'location');
    const from = this.url;
    if (from === undefined || location === undefined) return 'a redirect without an address';
    if (!REDIRECTS.has(status)) return 'APIs do not redirect with this status';
    if (!URL.canParse(location, from.href)) return 'a redirect to an invalid address';
    const to = new URL(location, from);
    if (to.hostname !== from.hostname) {
      return `it redirects to ${to.host}; credentials are not sent to another host, configure that address if it is right`;
    }
    const isDowngrade = from.protocol === 'https:' && to.protocol !== 'https:';
    if (isDowngrade || !/^https?:$/.test(to.protocol)) return `it redirects to ${to.protocol}//${to.host}, without TLS`;
    [to.username, to.password, to.hash] = ['', '', ''];
    this.url = to;
    return undefined;
  }

  /** Milliseconds since the epoch at the answer, on the server's clock; `now` if the answer does not tell. */
  timeOfAnswer(now: number): number {
    return serverTime(this.answer && headerIn(this.answer.headers, 'date'), now);
  }

  /** Returns the wait that the last answer demands (ms); `now` is the time on the clock of this host. */
  retryAfterMs(now: number): number | undefined {
    return this.answer && retryAfterMsIn(headerIn(this.answer.headers, 'retry-after'), this.timeOfAnswer(now));
  }

  /** Host of the last address; undefined if nothing was sent. */
  get host(): string | undefined {
    return this.url?.host;
  }

  /** Adds the host, the status, the content type and the header `Retry-After` of the last answer to a message. */
  explain(message: string): string {
    if (this.url === undefined) return message;
    const { host } = this.url;
    if (this.answer === undefined) {
      const { reason = '' } = this;
      if (message.includes(host) && message.includes(reason)) return message;
      return `${message} (no answer of ${host}${reason === '' ? '' : `: ${reason}`})`;
    }
    const type = headerIn(this.answer.headers, 'content-type')?.replace(/;.*/s, '').slice(0, MAX_TYPE);
    const wait = headerIn(this.answer.headers, 'retry-after')?.slice(0, MAX_TYPE);
    const parts = [
      this.answer.status,
      ...(type === undefined ? [] : [type]),
      ...(wait === undefined || wait === '' ? [] : [`Retry-After: ${wait}`]),
    ];
    const answer = ` (answer of ${host}: ${parts.join(', ')})`;
    return message.endsWith(answer) ? message : message + answer;
  }
}

/** Returns the first value of a header. */
export function headerIn(headers: AnswerHeaders, name: string): string | undefined {
  if (isMap(headers)) return headers.get(name) ?? undefined;
  const value = headers[name];
  return typeof value === 'string' ? value : value?.[0];
}

function isMap(headers: AnswerHeaders): headers is Extract<AnswerHeaders, { get(name: string): unknown }> {
  return typeof headers['get'] === 'function';
}

export interface AnswerLimits {
  /** Maximum size in bytes. Default: 32 MiB. */
  readonly maxBytes?: number | undefined;
  /**
   * Signal of the request, for the body of a `fetch`: that of Node.js 22 can miss an abort once it has returned the
   * answer.
   */
  readonly signal?: AbortSignal | undefined;
}

/** Passes on the pieces of an answer. Throws if it is longer than the maximum, so that it cannot fill the memory. */
export async function* boundedAnswer(
  body: AsyncIterable<unknown>,
  { maxBytes = MAX_ANSWER_BYTES, signal }: AnswerLimits = {},
): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  const pieces = signal !== undefined && isWebStream(body) ? piecesUntil(body, signal) : body;
  for await (const piece of pieces) {
    if (!(piece instanceof Uint8Array)) continue;
    bytes += piece.byteLength;
    if (bytes > maxBytes) throw new RangeError(`the answer is longer than ${maxBytes} bytes`);
    yield piece;
  }
}

/** Reads the text of an answer, within the limits. */
export async function answerText(body: AsyncIterable<unknown> | null, limits?: AnswerLimits): Promise<string> {
  if (body === null) return '';
  const decoder = new TextDecoder();
  let text = '';
  for await (const piece of boundedAnswer(body, limits)) text += decoder.decode(piece, { stream: true });
  return text + decoder.decode();
}

function isWebStream(body: AsyncIterable<unknown>): body is ReadableStream {
  return 'getReader' in body;
}

/** Passes on the pieces of a stream. Cancels it if the signal aborts, and throws the signal's reason. */
async function* piecesUntil(body: ReadableStream, signal: AbortSignal): AsyncGenerator {
  const reader: ReadableStreamDefaultReader<unknown> = body.getReader();
  // A cancelled stream ends the read in progress. A stream that has failed already rejects here, too.
  const cancel = (): void => void reader.cancel(signal.reason).catch(() => undefined);
  signal.addEventListener('abort', cancel, { once: true });
  try {
    for (;;) {
      signal.throwIfAborted();
      const { done, value } = await reader.read();
      signal.throwIfAborted();
      if (done) return;
      yield value;
    }
  } finally {
    signal.removeEventListener('abort', cancel);
    cancel();
  }
}
