/** The client of programs that request nodes. */

import {
  isJsonObject,
  silentLogger,
  systemClock,
  systemRandom,
  type Clock,
  type JsonObject,
  type LogFields,
  type Logger,
  type RandomSource,
} from '@nodepool/core';
import { newRequestPath, openStore, requestPath, REQUESTS_ROOT } from '@nodepool/store';
import {
  connect,
  ensurePath,
  isZooKeeperError,
  lockRecipe,
  type ClientOptions,
  type ZooKeeper,
} from '@nodepool/zookeeper';
import { setMaxListeners } from 'node:events';
import { hostname } from 'node:os';
import type { AdoptLeaseOptions, HeldNodes, RequestProgress, RequestSpec, WaitOptions } from './api.js';
import { pauseAfter, withLimits, type RequestorContext } from './context.js';
import { RequestRemovedError } from './errors.js';
import { adoptNodes, heldNodes } from './durable-lock.js';
import { Lease } from './lease.js';
import { SubmittedRequest } from './node-request.js';
import { PoolRegistry } from './pools.js';
import { isSameRequest, requestRecord } from './record.js';

export interface RequestorOptions {
  /** Name of the program in its requests, e.g. `my-ci`. */
  readonly name: string;
  /** Receives problems of background work. Default: no log. */
  readonly log?: Logger;
  /** Defaults: the system's. */
  readonly clock?: Clock;
  readonly random?: RandomSource;
}

export interface AcquireOptions extends WaitOptions {
  /** Receives each change while the request waits. */
  readonly onProgress?: (progress: RequestProgress) => void;
}

const DEFAULT_PRIORITY = 200;
/** Number of records that are read at the same time. */
const READ_BATCH = 100;

/** Connects to ZooKeeper. Rejects if there is no session within `timeoutMs`; the default is 30 seconds. */
export async function connectRequestor(
  options: RequestorOptions & Omit<ClientOptions, 'random'> & { readonly timeoutMs?: number },
): Promise<Requestor> {
  const { name, log, clock, random, timeoutMs = 30_000, ...client } = options;
  const zooKeeper = connect({ ...client, ...(clock === undefined ? {} : { clock }) });
  try {
    await zooKeeper.connected({ timeoutMs });
  } catch (error) {
    await zooKeeper.close();
    throw error;
  }
  const shared = { name, ...(log && { log }), ...(clock && { clock }), ...(random && { random }) };
  return new Requestor(zooKeeper, shared, () => zooKeeper.close());
}

/** Requests nodes on a ZooKeeper client that stays open after `close`. */
export function openRequestor(zooKeeper: ZooKeeper, options: RequestorOptions): Requestor {
  return new Requestor(zooKeeper, options, () => Promise.resolve());
}

/** Requests nodes from the launchers of one ZooKeeper ensemble. All methods may be called at the same time. */
export class Requestor {
  private readonly context: RequestorContext;
  private readonly name: string;
  private readonly closing = new AbortController();

  /** @internal */
  constructor(
    zooKeeper: ZooKeeper,
    { name, log = silentLogger, clock = systemClock, random = systemRandom }: RequestorOptions,
    private readonly disconnect: () => Promise<void>,
  ) {
    this.name = name;
    // One listener for each wait.
    setMaxListeners(Infinity, this.closing.signal);
    const identifier = `${hostname()}-${process.pid}`;
    const onWarning = (error: Error): void => log.warn('A lock could not be released yet; retrying', { error });
    this.context = {
      zooKeeper,
      store: openStore(zooKeeper, { clock, random, identifier, log }),
      locks: lockRecipe(zooKeeper, { clock, random, identifier, onWarning }),
      pools: new PoolRegistry(zooKeeper, clock, log),
      clock,
      random,
      log,
      own: new Set(),
      closing: this.closing.signal,
    };
  }

  /** Submits a request, exactly once even if ZooKeeper's answer is lost. */
  async request(spec: RequestSpec, options: WaitOptions = {}): Promise<SubmittedRequest> {
    const { labels, priority = DEFAULT_PRIORITY, durable = false } = spec;
    if (labels.length === 0) throw new RangeError('a request needs at least one label');
    if (!Number.isInteger(priority) || priority < 0 || priority > 999) {
      throw new RangeError(`the priority of a request must be a whole number from 0 to 999, not ${priority}`);
    }
    const { clock, random } = this.context;
    const record = requestRecord(spec, this.name, clock, random);
    return await withLimits(this.context, 'the request was not submitted', options, async (signal) => {
      const { id, owner } = await this.submit(record, newRequestPath(priority), durable, signal);
      return new SubmittedRequest(this.context, id, owner);
    });
  }

  /** Continues with a durable request that an earlier process submitted. */
  resume(requestId: string): SubmittedRequest {
    return new SubmittedRequest(this.context, requestId, 0n);
  }

  /**
   * Resolves with the nodes of all durable leases of an owner, by request. Reads the locks of all nodes, so it is for
   * the start of a program.
   */
  async leases(owner: string, options: WaitOptions = {}): Promise<readonly HeldNodes[]> {
    const what = `the leases of ${owner} were not read`;
    return await withLimits(this.context, what, options, (signal) => heldNodes(this.context, owner, signal));
  }

  /**
   * Continues with nodes of a durable lease, in this order. Rejects with `LeaseLostError`, which names the nodes that
   * the owner does not hold, and changes nothing then, except that other processes lose the nodes that it holds.
   */
  async adoptLease(owner: string, nodeIds: readonly string[], options: AdoptLeaseOptions = {}): Promise<Lease> {
    const { labels = [], takeOver = true } = options;
    const what = `nodes ${nodeIds.join(', ')} were not adopted`;
    return await withLimits(this.context, what, options, async (signal) => {
      const handles = await adoptNodes(this.context, owner, nodeIds, takeOver, signal);
      const names = handles.map(({ node }, index) => labels[index] ?? node.type[0] ?? '');
      return new Lease(this.context, handles, names, owner);
    });
  }

  /**
   * Requests nodes, waits for them, locks them and marks them `in-use`. Rejects with `RequestFailedError`, with
   * `RequestTimeoutError`, or with the reason of the signal, and cancels the request in these cases. A request that is
   * lost with its session is submitted again.
   */
  async acquire(spec: RequestSpec, options: AcquireOptions = {}): Promise<Lease> {
    const what = `no nodes for ${spec.labels.join(', ')}`;
    return await withLimits(this.context, what, options, async (signal) => {
      for (;;) {
        const request = await this.request(spec, { signal });
        try {
          if (options.onProgress !== undefined) {
            for await (const progress of request.progress({ signal })) options.onProgress(progress);
          }
          return await request.take({ signal });
        } catch (error) {
          if (!(error instanceof RequestRemovedError)) {
            await this.cancel(request);
            throw error;
          }
          // A removed request is not deleted again, because another request can have the same id after a backup is
          // restored.
          if (error.reason !== 'session-lost') throw error;
        }
      }
    });
  }

  /** Resolves with the labels that registered pools offer now. */
  async labels(options: WaitOptions = {}): Promise<ReadonlySet<string>> {
    const { pools } = this.context;
    await withLimits(this.context, 'the registered pools were not read', options, (signal) =>
      pools.ready({ signal, timeoutMs: Infinity }),
    );
    return pools.labels();
  }

  /**
   * Ends all waits. Leases and requests that are not durable end with the session, which is closed if
   * `connectRequestor` created it.
   */
  async close(): Promise<void> {
    this.closing.abort(new Error('the requestor is closed'));
    this.context.pools.close();
    this.context.store.close();
    await this.disconnect();
  }

  /**
   * Cancels the request. If the first attempt fails, others follow in the background, because the caller needs the
   * original error. Never rejects.
   */
  private async cancel(request: SubmittedRequest): Promise<void> {
    try {
      await request.cancel();
    } catch {
      const about = { node_request_id: request.id };
      void this.inBackground(() => request.cancel(), 'A request could not be cancelled', about);
    }
  }

  private async submit(
    record: JsonObject,
    prefix: string,
    durable: boolean,
    signal: AbortSignal,
  ): Promise<{ readonly id: string; readonly owner: bigint }> {
    const { zooKeeper, own } = this.context;
    const data = new TextEncoder().encode(JSON.stringify(record));
    const mode = durable ? 'persistent-sequential' : 'ephemeral-sequential';
    // `unknown`: an attempt may have created the request.
    const attempt = { unknown: false };
    try {
      for (;;) {
        try {
          const found = attempt.unknown ? await this.find(record, prefix, signal) : undefined;
          if (found !== undefined) return found;
          attempt.unknown = false;
          const { path, stat } = await zooKeeper.create(prefix, data, { mode, signal });
          const id = path.slice(REQUESTS_ROOT.length + 1);
          own.add(id);
          return { id, owner: stat.ephemeralOwner };
        } catch (error) {
          attempt.unknown ||= isZooKeeperError(error, 'outcome-unknown');
          if (isZooKeeperError(error, 'no-node')) await ensurePath(zooKeeper, REQUESTS_ROOT, { signal });
          else await pauseAfter(this.context, error, signal);
        }
      }
    } catch (error) {
      if (attempt.unknown) {
        const failure = 'A request of unknown outcome could not be removed';
        void this.inBackground(() => this.withdraw(record, prefix), failure);
      }
      throw error;
    }
  }

  /** Removes the request that a creation of unknown outcome may have created. */
  private async withdraw(record: JsonObject, prefix: string): Promise<void> {
    const { closing, store } = this.context;
    const found = await this.find(record, prefix, closing);
    if (found !== undefined) await store.requests.remove(found.id, { signal: closing });
  }

  /** Repeats `work` while ZooKeeper cannot be reached, until `close`. Never rejects: logs `failure` at the end. */
  private async inBackground(work: () => Promise<void>, failure: string, about: LogFields = {}): Promise<void> {
    const { closing, log } = this.context;
    for (;;) {
      try {
        await work();
        return;
      } catch (error) {
        try {
          await pauseAfter(this.context, error, closing);
        } catch {
          log.warn(failure, { ...about, error });
          return;
        }
      }
    }
  }

  /** Finds the request that a creation of unknown outcome created, and adds it to the requests of this process. */
  private async find(
    record: JsonObject,
    prefix: string,
    signal: AbortSignal,
  ): Promise<{ readonly id: string; readonly owner: bigint } | undefined> {
    const { zooKeeper, own } = this.context;
    await zooKeeper.sync(REQUESTS_ROOT, { signal });
    const { children } = await zooKeeper.children(REQUESTS_ROOT, { signal });
    const ids = children.filter((id) => requestPath(id).startsWith(prefix) && !own.has(id)).sort();
    for (let end = ids.length; end > 0; end -= READ_BATCH) {
      const batch = ids.slice(Math.max(0, end - READ_BATCH), end).reverse();
      const owners = await Promise.all(batch.map((id) => this.ownerIfSame(id, record, signal)));
      const index = owners.findIndex((owner, at) => owner !== undefined && !own.has(batch[at] ?? ''));
      const [id, owner] = [batch[index], owners[index]];
      if (id === undefined || owner === undefined) continue;
      own.add(id);
      return { id, owner };
    }
    return undefined;
  }

  /** Resolves with the session that owns the request (0 for none), or with undefined if it is another request. */
  private async ownerIfSame(id: string, record: JsonObject, signal: AbortSignal): Promise<bigint | undefined> {
    try {
      const { data, stat } = await this.context.zooKeeper.get(requestPath(id), { signal });
      const { ephemeralOwner } = stat;
      const alive = ephemeralOwner === 0n || ephemeralOwner === this.context.zooKeeper.session?.id;
      return alive && isSameRequest(parse(data), record) ? ephemeralOwner : undefined;
    } catch (error) {
      if (isZooKeeperError(error, 'no-node')) return undefined;
      throw error;
    }
  }
}

/** Returns an empty object for a record that cannot be read, which another program wrote. */
function parse(data: Uint8Array): JsonObject {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(data));
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}
