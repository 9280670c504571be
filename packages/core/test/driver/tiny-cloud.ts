/** A cloud in memory, on the test's clock, with latency, boot time, delayed listings and planned faults. */

import {
  InstanceFailedError,
  NotFoundError,
  TransientError,
  abortReason,
  sleep,
  type Clock,
  type Instance,
} from '../../src/index.js';

export type Operation = 'create' | 'attach' | 'delete' | 'list';

/** A fault of one call. */
export type Fault =
  /** Rejects without effect. */
  | { readonly kind: 'refuse'; readonly error: Error }
  /** Takes effect, but the response is lost. */
  | { readonly kind: 'lose-answer' }
  /** Rejects with an unknown outcome, and takes effect after `ms` milliseconds. */
  | { readonly kind: 'late-effect'; readonly ms: number }
  /** Never settles, even if the signal aborts. */
  | { readonly kind: 'hang' }
  | { readonly kind: 'throw-synchronously'; readonly error: Error };

interface Server {
  readonly id: string;
  readonly hostname: string;
  readonly tags: Readonly<Record<string, string>>;
  readonly createdAt: number;
  readonly readyAt: number;
  address: boolean;
  failed: string | undefined;
  deletedAt: number;
}

export interface TinyCloudOptions {
  readonly latencyMs?: number;
  readonly bootMs?: number;
  /** Age of listings, in milliseconds. */
  readonly lagMs?: number;
  /** Time from the call until the instance disappears, in milliseconds. */
  readonly deletionMs?: number;
}

export class TinyCloud {
  readonly calls: Record<Operation, number> = { create: 0, attach: 0, delete: 0, list: 0 };
  /** The start times of all calls. */
  readonly log: { readonly operation: Operation; readonly at: number }[] = [];
  private readonly servers = new Map<string, Server>();
  private readonly faults: { readonly operation: Operation; readonly fault: Fault }[] = [];
  private nextId = 1;
  private readonly latencyMs: number;
  private readonly bootMs: number;
  private readonly lagMs: number;
  private readonly deletionMs: number;

  constructor(
    private readonly clock: Clock,
    options: TinyCloudOptions = {},
  ) {
    this.latencyMs = options.latencyMs ?? 10;
    this.bootMs = options.bootMs ?? 5000;
    this.lagMs = options.lagMs ?? 0;
    this.deletionMs = options.deletionMs ?? 2000;
  }

  /** Adds faults for the next calls of the operation, one per call, after the faults already planned. */
  failNext(operation: Operation, ...faults: Fault[]): void {
    for (const fault of faults) this.faults.push({ operation, fault });
  }

  /** The instances that exist now, regardless of listings. */
  get existing(): string[] {
    const now = this.clock.monotonic();
    return [...this.servers.values()].filter((server) => server.deletedAt > now).map((server) => server.id);
  }

  breakInstance(id: string, reason: string): void {
    this.server(id).failed = reason;
  }

  /** Deletes the instance as a preemption does. */
  preempt(id: string): void {
    this.server(id).deletedAt = this.clock.monotonic();
  }

  create(hostname: string, tags: Readonly<Record<string, string>>, signal: AbortSignal): Promise<string> {
    return this.perform('create', signal, () => {
      const now = this.clock.monotonic();
      const id = `i-${this.nextId++}`;
      this.servers.set(id, {
        id,
        hostname,
        tags,
        createdAt: now,
        readyAt: now + this.bootMs,
        address: false,
        failed: undefined,
        deletedAt: Infinity,
      });
      return id;
    });
  }

  attach(id: string, signal: AbortSignal): Promise<void> {
    return this.perform('attach', signal, () => {
      const server = this.server(id);
      if (server.address) throw new InstanceFailedError(`${id} was given a second address`);
      server.address = true;
    });
  }

  delete(id: string, signal: AbortSignal): Promise<void> {
    return this.perform('delete', signal, () => {
      const now = this.clock.monotonic();
      const server = this.servers.get(id);
      if (server === undefined || server.deletedAt <= now) throw new NotFoundError(`no instance ${id}`);
      if (server.deletedAt === Infinity) server.deletedAt = now + this.deletionMs;
    });
  }

  list(signal: AbortSignal): Promise<readonly Instance[]> {
    return this.perform('list', signal, () => {
      const then = this.clock.monotonic() - this.lagMs;
      return [...this.servers.values()]
        .filter((server) => server.createdAt <= then && server.deletedAt > then)
        .map((server) => describe(server, then));
    });
  }

  /** Performs a call. Not an async function, since a driver may throw before it returns a promise. */
  private perform<T>(operation: Operation, signal: AbortSignal, effect: () => T): Promise<T> {
    this.calls[operation] += 1;
    this.log.push({ operation, at: this.clock.monotonic() });
    const index = this.faults.findIndex((planned) => planned.operation === operation);
    const fault = index < 0 ? undefined : this.faults.splice(index, 1)[0]?.fault;
    if (fault?.kind === 'throw-synchronously') throw fault.error;
    if (fault?.kind === 'hang') return new Promise(() => undefined);
    return this.answer(fault, signal, effect);
  }

  private async answer<T>(fault: Fault | undefined, signal: AbortSignal, effect: () => T): Promise<T> {
    if (signal.aborted) throw abortReason(signal);
    await sleep(this.clock, this.latencyMs / 2, signal);
    switch (fault?.kind) {
      case 'refuse':
        throw fault.error;
      case 'lose-answer':
        effect();
        throw new TransientError('the connection was cut');
      case 'late-effect':
        this.clock.schedule(fault.ms, effect);
        throw new TransientError('the gateway gave up');
      default: {
        const result = effect();
        await sleep(this.clock, this.latencyMs / 2, signal);
        return result;
      }
    }
  }

  private server(id: string): Server {
    const server = this.servers.get(id);
    if (server === undefined) throw new NotFoundError(`no instance ${id}`);
    return server;
  }
}

function describe(server: Server, now: number): Instance {
  const ready = server.readyAt <= now && server.failed === undefined;
  return {
    externalId: server.id,
    hostname: server.hostname,
    tags: server.tags,
    ready,
    deleted: false,
    failed: server.failed,
    interfaceIp: server.address ? '192.0.2.1' : undefined,
    resources: { instances: 1, cores: 2 },
  };
}
