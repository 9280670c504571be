/**
 * `nodepool explain request|node|label ID`: asks launchers to explain the state of an object; only they know their
 * decisions.
 */

import { isError } from '@nodepool/core';
import type { NodepoolConfig } from '@nodepool/config';
import { RefusedError, type ConsoleContext, type ListFormat } from '../command-context.js';
import { parseNodeId } from '../node-id.js';

export interface ExplainOptions {
  /** URLs of web endpoints. If empty, the endpoint of the configuration on this machine is used. */
  readonly launcher: readonly string[];
  readonly format: ListFormat;
}

export interface ExplainContext extends ConsoleContext {
  /** Aborts when the user interrupts the command. */
  readonly interrupted: AbortSignal;
}

const TIMEOUT_MS = 10_000;

type Answer = { readonly known: true; readonly text: string } | { readonly known: false; readonly reason: string };

/**
 * Prints the answer of each launcher. Rejects with `RefusedError` if one cannot be reached, or if none knows the
 * object.
 */
export async function explain(
  { out, interrupted }: ExplainContext,
  { webapp }: Pick<NodepoolConfig, 'webapp'>,
  kind: 'request' | 'node' | 'label',
  id: string,
  { launcher, format }: ExplainOptions,
): Promise<void> {
  const launchers = launcher.length > 0 ? launcher : [`http://localhost:${webapp.port}`];
  const subject = kind === 'node' ? parseNodeId(id) : id;
  const urls = launchers.map((text) => explanationUrl(text, kind, subject));
  const answers = await Promise.all(urls.map((url) => ask(url, format, interrupted)));
  const known = answers.flatMap((answer) => (answer.known ? [answer.text] : []));
  if (known.length === 0) {
    throw new RefusedError(answers.flatMap((answer) => (answer.known ? [] : [answer.reason])).join('\n'));
  }
  if (format === 'json') out.print(`[${known.join(',')}]`);
  else out.print(known.map((text) => text.trimEnd()).join('\n\n'));
}

function explanationUrl(launcher: string, kind: string, id: string): URL {
  let base: URL;
  try {
    base = new URL(launcher);
  } catch (error) {
    throw new RefusedError(`--launcher ${launcher} is not a URL; write e.g. http://localhost:8005`, { cause: error });
  }
  if (base.protocol !== 'http:' && base.protocol !== 'https:') {
    throw new RefusedError(`--launcher ${launcher} is not of http; write e.g. http://localhost:8005`);
  }
  return new URL(`${base.pathname.replace(/\/$/, '')}/explain/${kind}/${encodeURIComponent(id)}`, base);
}

async function ask(url: URL, format: ListFormat, interrupted: AbortSignal): Promise<Answer> {
  const signal = AbortSignal.any([interrupted, AbortSignal.timeout(TIMEOUT_MS)]);
  const accept = format === 'json' ? 'application/json' : 'text/plain';
  let response: Response;
  let text: string;
  try {
    response = await fetch(url, { headers: { Accept: accept, Connection: 'close' }, signal, redirect: 'error' });
    text = await response.text();
  } catch (error) {
    if (interrupted.aborted) throw error;
    throw new RefusedError(
      `the launcher at ${url.origin} cannot be asked: ${reasonOf(error)}; ` +
        'name its web endpoint with --launcher URL, and make sure that it runs without --no-webapp',
      { cause: error },
    );
  }
  if (response.ok) return { known: true, text };
  const reason = `the launcher at ${url.origin} says: ${messageOf(text)}`;
  if (response.status === 404) return { known: false, reason };
  throw new RefusedError(`${reason} (status ${response.status})`);
}

/** Returns the message of an error, which is text, or JSON with a message. */
function messageOf(text: string): string {
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === 'object' && parsed !== null && 'message' in parsed) return String(parsed.message);
  } catch {
    // The body is plain text.
  }
  return text.trim().slice(0, 500);
}

/** Returns the reason, which is often only in the cause. */
function reasonOf(error: unknown): string {
  if (!isError(error)) return String(error);
  if (error.name === 'TimeoutError') return `no answer within ${TIMEOUT_MS / 1000} s`;
  const { cause } = error;
  if (!isError(cause)) return error.message;
  return cause.message === '' && 'code' in cause ? String(cause.code) : cause.message;
}
