/** The calls to a cluster, each with a deadline, a metric and typed errors. */

import type { ApiCall, ApiOperation, Call, Clock, JsonObject } from '@nodepool/core';
import { answerText, ApiClient, isJsonObject, objectAt, stringAt, TransientError } from '@nodepool/core';
import { connectionErrorOf, errorOf, ApiStatusError } from '../errors.js';
import type { ClusterAccess } from './kubeconfig.js';
import { listAt, objectOf, pathOf, type Collection, type KubernetesObject } from './objects.js';
import type { Message as HttpMessage, ClusterTransport, Used } from './transport.js';

const SERVICE = 'kubernetes';
const PAGE_SIZE = 500;
/** Time for which the server keeps a watch open (s). It closes watches after 30 to 60 minutes by itself. */
const WATCH_SECONDS = 1800;
/** Time in addition to `WATCH_SECONDS` after which an open watch is aborted (s). */
const WATCH_GRACE_SECONDS = 60;
const WATCH_TIMEOUT_MS = (WATCH_SECONDS + WATCH_GRACE_SECONDS) * 1000;
/** Maximum length of an event of a watch in characters; etcd stores objects of up to 1.5 MiB. */
const MAX_EVENT = 16 * 2 ** 20;
/** Types of events of a watch that contain an object of the collection. */
const OBJECT_EVENTS: ReadonlySet<unknown> = new Set(['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK']);

/** Selectors of a list or a watch. */
export interface Selection {
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
}

export interface ObjectList {
  readonly items: readonly KubernetesObject[];
  /** Version from which a watch continues. */
  readonly resourceVersion: string;
}

export interface WatchEvent {
  readonly type: string;
  readonly object: JsonObject;
}

export interface Watcher {
  /** Called when the server has accepted the watch. */
  readonly onOpen?: () => void;
  /** Returns true to end the watch. */
  readonly onEvent: (event: WatchEvent) => boolean;
  /** Time limit of the watch (ms). Default: a minute more than the server keeps it open. */
  readonly timeoutMs?: number;
}

export interface ClientOptions {
  readonly transport: ClusterTransport;
  readonly clock: Clock;
  readonly onApiCall: (call: ApiCall) => void;
  readonly callsPerSecond: number;
  /** URL of the cluster, for messages. */
  readonly server: string;
}

export class Client {
  private readonly api: ApiClient<Used>;

  constructor(private readonly options: ClientOptions) {
    const { clock, callsPerSecond, onApiCall, server, transport } = options;
    this.api = new ApiClient({
      ...{ clock, callsPerSecond, onApiCall, credentials: transport },
      secrets: () => transport.secrets,
      errorOf: (error, attempted) =>
        error instanceof ApiStatusError
          ? errorOf(attempted, error, transport.access.source)
          : connectionErrorOf(attempted, server, error),
    });
  }

  async get(collection: Collection, name: string, call: Call): Promise<KubernetesObject> {
    return objectOf(await this.call(collection, { method: 'GET', verb: 'get', path: pathOf(collection, name) }, call));
  }

  async create(collection: Collection, object: JsonObject, call: Call): Promise<KubernetesObject> {
    const body = JSON.stringify(object);
    return objectOf(
      await this.call(collection, { method: 'POST', verb: 'create', path: pathOf(collection), body }, call),
    );
  }

  /** Deletes the object if it still has the given uid; rejects with a conflict otherwise. */
  async delete(collection: Collection, name: string, uid: string, call: Call): Promise<void> {
    const body = JSON.stringify({
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      propagationPolicy: 'Background',
      preconditions: { uid },
    });
    await this.call(collection, { method: 'DELETE', verb: 'delete', path: pathOf(collection, name), body }, call);
  }

  /** Lists all pages. A list that changes too much between two pages is read again at the next call. */
  async list(collection: Collection, selection: Selection, call: Call): Promise<ObjectList> {
    const items: KubernetesObject[] = [];
    let next: string | undefined;
    for (;;) {
      const query = queryOf({ ...selection, limit: String(PAGE_SIZE), continue: next });
      const page = await this.call(collection, { method: 'GET', verb: 'list', path: pathOf(collection) + query }, call);
      for (const item of listAt(page, 'items')) items.push(objectOf(item));
      const metadata = objectAt(page, 'metadata') ?? {};
      next = stringAt(metadata, 'continue');
      if (next === undefined || next === '') {
        return { items, resourceVersion: stringAt(metadata, 'resourceVersion') ?? '' };
      }
    }
  }

  /**
   * Watches from a version on, until the server ends the watch or `onEvent` returns true. Rejects with a `DriverError`;
   * with `ExpiredError` if the version is too old.
   */
  async watch(
    collection: Collection,
    selection: Selection & { readonly resourceVersion?: string },
    { onOpen, onEvent, timeoutMs = WATCH_TIMEOUT_MS }: Watcher,
    call: Call,
  ): Promise<void> {
    const { transport } = this.options;
    const query = queryOf({
      ...selection,
      watch: 'true',
      allowWatchBookmarks: 'true',
      timeoutSeconds: String(WATCH_SECONDS),
    });
    const message = { method: 'GET', verb: 'watch', path: pathOf(collection) + query } as const;
    await this.api.send({ ...operationOf(collection, message), timeoutMs }, call, async (attempt) => {
      const { body } = await transport.send(message, 'watches', attempt);
      onOpen?.();
      for await (const line of linesOf(body)) {
        if (onEvent(eventOf(this.answerIn(line, collection, message)))) return;
      }
    });
  }

  /** The access to the cluster that the next call uses. */
  get access(): ClusterAccess {
    return this.options.transport.access;
  }

  /** Resolves with the token of the context's user; undefined if the user has none. */
  token(): Promise<string | undefined> {
    return this.options.transport.token();
  }

  /** Aborts all calls and watches, and closes the connections. */
  async close(): Promise<void> {
    this.api.stop();
    await this.options.transport.close();
  }

  private call(collection: Collection, message: Message, call: Call): Promise<JsonObject> {
    return this.api.send(operationOf(collection, message), call, async (attempt) => {
      const { body } = await this.options.transport.send(message, 'calls', attempt);
      return this.answerIn(await answerText(body), collection, message);
    });
  }

  /**
   * Returns the JSON of an answer or of an event. Throws `TransientError` if the API never sends it: a proxy can answer
   * in place of the cluster, with any text and status 200.
   */
  private answerIn(text: string, collection: Collection, message: Message): JsonObject {
    const { answer, cause } = parsed(text);
    if (answer !== undefined && IS_EXPECTED[message.verb](answer, collection.kind.objectKind)) return answer;
    throw new TransientError(
      `${nameOf(collection, message)}: the answer is not one of the Kubernetes API; does a proxy answer for ${this.options.server}?`,
      { cause, outcome: message.method === 'GET' ? 'not-applied' : 'unknown' },
    );
  }
}

interface Message extends HttpMessage {
  /** Verb of the API, for metrics and messages. */
  readonly verb: 'get' | 'list' | 'watch' | 'create' | 'delete';
}

function operationOf(collection: Collection, message: Message): ApiOperation & { readonly name: string } {
  const { method, verb } = message;
  const operation = `${collection.kind.name}.${verb}`;
  return { service: SERVICE, method, operation, name: nameOf(collection, message) };
}

/** Returns the name of a call in messages, e.g. `create pods in main-0000000001`. */
function nameOf({ kind, namespace }: Collection, { verb }: Message): string {
  return `${verb} ${kind.name}${namespace === undefined ? '' : ` in ${namespace}`}`;
}

function queryOf(parameters: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(parameters).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return `?${new URLSearchParams(given).toString()}`;
}

/** Tests of the JSON in an answer, or in an event of a watch, by the verb of the call. */
const IS_EXPECTED: Readonly<Record<Message['verb'], (answer: JsonObject, objectKind: string) => boolean>> = {
  get: isOfKind,
  create: isOfKind,
  // The API of OpenShift writes an empty list as null.
  list: (answer, objectKind) =>
    isOfKind(answer, `${objectKind}List`) && (Array.isArray(answer['items']) || answer['items'] === null),
  // An object remains for a while, or is deleted at once.
  delete: (answer, objectKind) =>
    isOfKind(answer, objectKind) || (isOfKind(answer, 'Status') && answer['status'] === 'Success'),
  watch: ({ type, object = null }, objectKind) =>
    isJsonObject(object) &&
    (type === 'ERROR' ? isOfKind(object, 'Status') : OBJECT_EVENTS.has(type) && isOfKind(object, objectKind)),
};

function isOfKind({ kind }: JsonObject, expected: string): boolean {
  return kind === expected;
}

function parsed(text: string): { readonly answer?: JsonObject; readonly cause?: unknown } {
  try {
    const value: unknown = JSON.parse(text);
    return isJsonObject(value) ? { answer: value } : {};
  } catch (error) {
    return { cause: error };
  }
}

function eventOf(event: JsonObject): WatchEvent {
  return { type: stringAt(event, 'type') ?? '', object: objectAt(event, 'object') ?? {} };
}

/** Splits a stream into lines that are not empty. */
async function* linesOf(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const piece of body) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > MAX_EVENT) throw new RangeError(`an event is longer than ${MAX_EVENT} characters`);
    for (const line of lines) if (line !== '') yield line;
  }
}
