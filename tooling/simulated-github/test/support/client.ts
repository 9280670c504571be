/** A client of the simulated GitHub for tests, which can also send what no real client would. */

import { createPrivateKey, sign } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { setImmediate } from 'node:timers/promises';
import type { Clock } from '@nodepool/core';
import type { SimulatedGithub } from '../../src/index.js';
import type { JobMessage } from '../../src/message-queue.js';
import type { Statistics } from '../../src/statistics.js';

const SYSTEM_INFO = { system: 'test', version: '1', commit_sha: 'none', scale_set_id: 0, subsystem: 'test' };
export const USER_AGENT = JSON.stringify(SYSTEM_INFO);

/** The members of an answer that tests read. */
export interface Body {
  readonly [name: string]: unknown;
  readonly id?: number;
  readonly token?: string;
  readonly url?: string;
  readonly message?: string;
  readonly typeName?: string;
  readonly sessionId?: string;
  readonly messageQueueUrl?: string;
  readonly messageQueueAccessToken?: string;
  readonly statistics?: Statistics;
  readonly count?: number;
  readonly value?: readonly Body[];
}

export interface TestAnswer {
  readonly status: number;
  readonly body: Body;
  readonly headers: Headers;
  /** True if the answer begins with a byte order mark. */
  readonly hasMark: boolean;
}

export interface CallOptions {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string | undefined>>;
  /** `Bearer` token. */
  readonly token?: string | undefined;
  readonly signal?: AbortSignal;
}

/** Calls a URL with the headers of GitHub's client. A header that is undefined is not sent. */
export async function call(method: string, url: string, options: CallOptions = {}): Promise<TestAnswer> {
  const { body, headers = {}, token, signal } = options;
  const all = {
    'User-Agent': USER_AGENT,
    'Content-Type': 'application/json',
    Authorization: token === undefined ? undefined : `Bearer ${token}`,
    ...headers,
  };
  const sent = Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const content = body === undefined ? null : typeof body === 'string' ? body : JSON.stringify(body);
  const answer = await fetch(url, {
    ...{ method, headers: Object.fromEntries(sent), body: content, redirect: 'manual' },
    ...(signal === undefined ? {} : { signal }),
  });
  // `text()` would remove a byte order mark.
  const text = Buffer.from(await answer.arrayBuffer()).toString('utf8');
  const hasMark = text.startsWith('\uFEFF');
  return { status: answer.status, body: jsonIn(text.replace('\uFEFF', '')), headers: answer.headers, hasMark };
}

/** Returns a JSON web token that is signed with the private key in a file. */
export async function appToken(keyFile: string, claims: object, header: object = { alg: 'RS256' }): Promise<string> {
  const key = createPrivateKey(await readFile(keyFile, 'utf8'));
  const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const signed = `${encoded(header)}.${encoded(claims)}`;
  return `${signed}.${sign('RSA-SHA256', Buffer.from(signed), key).toString('base64url')}`;
}

/** Returns claims as GitHub's client sends them. */
export function appClaims(github: SimulatedGithub, clock: Clock): { iss: string; iat: number; exp: number } {
  const iat = Math.floor(clock.now() / 1000) - 60;
  return { iss: github.clientId, iat, exp: iat + 540 };
}

/** Waits until the condition holds, while calls are on their way. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await setImmediate();
}

export interface Queue {
  readonly sessionId: string;
  readonly url: string;
  readonly token: string;
  readonly statistics: Statistics;
}

export interface TestMessage {
  readonly id: number;
  readonly jobs: readonly JobMessage[];
  readonly statistics: Statistics;
}

/** A client of one tenant of the Actions service. */
export class TestClient {
  private constructor(
    private readonly github: SimulatedGithub,
    private readonly path: string,
    private url: string,
    private token: string,
  ) {}

  /** Logs in with a personal access token. */
  static async logIn(github: SimulatedGithub, path = 'acme'): Promise<TestClient> {
    const client = new TestClient(github, path, '', '');
    await client.logInAgain();
    return client;
  }

  async logInAgain(): Promise<void> {
    const { github, path } = this;
    const kind = path.startsWith('enterprises/') ? path : path.includes('/') ? `repos/${path}` : `orgs/${path}`;
    const token = github.personalToken();
    const registration = `${github.url}/api/v3/${kind}/actions/runners/registration-token`;
    const registered = await call('POST', registration, { token });
    const { body } = await call('POST', `${github.url}/api/v3/actions/runner-registration`, {
      headers: { Authorization: `RemoteAuth ${registered.body.token}` },
      body: { url: `${github.url}/${path}`, runner_event: 'register' },
    });
    this.url = body.url ?? '';
    this.token = body.token ?? '';
  }

  /** Calls the Actions service; `path` is below its address. */
  call(method: string, path: string, options: CallOptions = {}): Promise<TestAnswer> {
    const separator = path.includes('?') ? '&' : '?';
    return this.plainCall(method, `${path}${separator}api-version=6.0-preview`, options);
  }

  /** Calls the Actions service without the version of its API. */
  plainCall(method: string, path: string, options: CallOptions = {}): Promise<TestAnswer> {
    return call(method, `${this.url}_apis/${path}`, { token: this.token, ...options });
  }

  /** Creates a scale set and returns its id. */
  async createSet(name: string, labels: readonly string[] = [name], runnerGroupId = 1): Promise<number> {
    const body = { name, runnerGroupId, labels: labels.map((label) => ({ name: label, type: 'System' })) };
    const created = await this.call('POST', 'runtime/runnerscalesets', { body });
    return created.body.id ?? 0;
  }

  async openSession(set: number, ownerName = 'tests'): Promise<Queue> {
    const { body, status } = await this.call('POST', `runtime/runnerscalesets/${set}/sessions`, {
      body: { ownerName },
    });
    if (status !== 200) throw new Error(`HTTP ${status}: ${body.message}`);
    return queueIn(body);
  }

  /** Registers a runner and returns its id. */
  async register(set: number, name: string): Promise<number> {
    const body = { name, workFolder: '_work' };
    const { body: answer } = await this.call('POST', `runtime/runnerscalesets/${set}/generatejitconfig`, { body });
    return (answer['runner'] as Body).id ?? 0;
  }
}

export function queueIn(body: Body): Queue {
  const { sessionId = '', messageQueueUrl: url = '', messageQueueAccessToken: token = '', statistics } = body;
  if (statistics === undefined) throw new Error('the session has no statistics');
  return { sessionId, url, token, statistics };
}

/** Asks for the next message and returns the answer. */
export function poll(queue: Queue, capacity: number, last = 0, signal?: AbortSignal): Promise<TestAnswer> {
  const headers = {
    Accept: 'application/json; api-version=6.0-preview',
    'X-ScaleSetMaxCapacity': String(capacity),
    'Content-Type': undefined,
  };
  const url = last === 0 ? queue.url : `${queue.url}&lastMessageId=${last}`;
  return call('GET', url, { headers, token: queue.token, ...(signal === undefined ? {} : { signal }) });
}

/** Returns the message of an answer. Throws if it has none. */
export function messageIn({ status, body }: TestAnswer): TestMessage {
  const { messageId, messageType, body: text, statistics } = body;
  if (status !== 200 || messageType !== 'RunnerScaleSetJobMessages' || statistics === undefined) {
    throw new Error(`HTTP ${status} has no message`);
  }
  return { id: Number(messageId), jobs: JSON.parse(String(text)) as JobMessage[], statistics };
}

export function deleteMessage({ url, token }: Queue, id: number): Promise<TestAnswer> {
  const address = new URL(url);
  address.pathname += `/${id}`;
  return call('DELETE', address.href, { token });
}

/** Reads and deletes all messages and returns their jobs as `type number`. */
export async function drain(queue: Queue, capacity: number): Promise<readonly string[]> {
  const found: string[] = [];
  for (;;) {
    const answer = await poll(queue, capacity);
    if (answer.status === 202) return found;
    const { id, jobs } = messageIn(answer);
    found.push(
      ...jobs.map(({ messageType, workflowRunId }) => `${messageType} ${Number(workflowRunId) - 30_000_000_000}`),
    );
    await deleteMessage(queue, id);
  }
}

function jsonIn(text: string): Body {
  try {
    return JSON.parse(text) as Body;
  } catch {
    // Some answers have no JSON.
    return { text };
  }
}
