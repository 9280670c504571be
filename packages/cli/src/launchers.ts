/** Asks the web endpoints of launchers, which the registry of components names. */

import { hostname } from 'node:os';
import { isIP } from 'node:net';
import {
  answerText,
  isError,
  isJsonObject,
  systemClock,
  TimerQueue,
  withDeadline,
  printable,
  type JsonObject,
} from '@nodepool/core';
import type { ComponentStore, WebEndpoint } from '@nodepool/store';
import { CommandError, UsageError } from './command-context.js';

export type LauncherAnswer =
  | { readonly launcher: string; readonly outcome: 'known'; readonly text: string; readonly date: Date | undefined }
  /** The launcher does not know the subject, or does not have the page. */
  | { readonly launcher: string; readonly outcome: 'unknown'; readonly reason: string }
  | { readonly launcher: string; readonly outcome: 'failed'; readonly reason: string };

export interface LauncherQuestion {
  /** Path below the web endpoint, escaped. */
  readonly path: string;
  readonly accept: 'application/json' | 'application/jsonl' | 'text/plain';
  readonly timeoutMs: number;
  /** Aborts when the user interrupts the command. */
  readonly interrupted: AbortSignal;
}

/** Returns the web endpoints of the registered launchers, sorted. */
export function launcherUrls(components: Pick<ComponentStore, 'all'>, ownHostname = hostname()): readonly string[] {
  const urls = new Set<string>();
  for (const { component } of components.all('launcher')) {
    if (component.webapp !== undefined) urls.add(urlOf(component.webapp, component.hostname === ownHostname));
  }
  return [...urls].sort();
}

/** Returns the address of an endpoint. The name of this machine might not resolve here, unlike `localhost`. */
function urlOf({ host, port }: WebEndpoint, isHere: boolean): string {
  const family = isIP(host);
  if (family === 6) return `http://[${host}]:${port}`;
  return `http://${family === 0 && isHere ? 'localhost' : host}:${port}`;
}

/** Returns the URL of `--launcher`. Throws `UsageError`. */
export function checkLauncherUrl(launcher: string): string {
  let base: URL;
  try {
    base = new URL(launcher);
  } catch {
    throw new UsageError(`--launcher ${launcher} is not a URL; write e.g. http://localhost:8005`);
  }
  if (base.protocol !== 'http:' && base.protocol !== 'https:') {
    throw new UsageError(`--launcher ${launcher} is not an http URL; write e.g. http://localhost:8005`);
  }
  return launcher.replace(/\/$/, '');
}

/** Asks all launchers at once. Rejects only if the user interrupts the command. */
export function askLaunchers(
  launchers: readonly string[],
  question: LauncherQuestion,
): Promise<readonly LauncherAnswer[]> {
  return Promise.all(launchers.map((launcher) => ask(launcher, question)));
}

async function ask(launcher: string, question: LauncherQuestion): Promise<LauncherAnswer> {
  const { path, accept, timeoutMs, interrupted } = question;
  const headers = { Accept: accept, Connection: 'close' };
  const limits = {
    ...{ timers: new TimerQueue(systemClock), signal: interrupted, deadline: systemClock.monotonic() + timeoutMs },
    onDeadline: () => new Error(`no answer within ${timeoutMs / 1000} s`),
  };
  try {
    const { response, text } = await withDeadline(limits, async (signal) => {
      const answer = await fetch(`${launcher}${path}`, { headers, signal, redirect: 'error' });
      return { response: answer, text: await answerText(answer.body, { maxBytes: Infinity, signal }) };
    });
    if (response.ok) {
      const date = response.headers.get('date');
      return { launcher, outcome: 'known', text, date: date === null ? undefined : new Date(date) };
    }
    const reason = `the launcher at ${launcher} says: ${messageOf(text)}`;
    if (response.status === 404) return { launcher, outcome: 'unknown', reason };
    return { launcher, outcome: 'failed', reason: `${reason} (status ${response.status})` };
  } catch (error) {
    interrupted.throwIfAborted();
    const reason = `the launcher at ${launcher} cannot be asked: ${reasonOf(error)}`;
    return { launcher, outcome: 'failed', reason };
  }
}

/** Returns the JSON object that a launcher has answered with. Throws `CommandError` if it is something else. */
export function documentOf({ launcher, text }: { readonly launcher: string; readonly text: string }): JsonObject {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch {
    // The refusal below names the launcher.
  }
  if (isJsonObject(document)) return document;
  throw new CommandError(`the launcher at ${launcher} did not answer with JSON; is it another program?`);
}

/** Returns the message of an error, which is text, or JSON with a message. */
function messageOf(text: string): string {
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === 'object' && parsed !== null && 'message' in parsed) return printable(String(parsed.message));
  } catch {
    // The body is plain text.
  }
  return printable(text.trim().slice(0, 500));
}

/** Returns the reason, which is often only in the cause. */
function reasonOf(error: unknown): string {
  if (!isError(error)) return String(error);
  const { cause } = error;
  if (!isError(cause)) return error.message;
  return cause.message === '' && 'code' in cause ? String(cause.code) : cause.message;
}
