/** Renews a lease and watches its node while a stage of a job needs it. */

import { sleep, type Clock } from '@nodepool/core';
import { LeaseRequestError, type LeaseClient, type LeaseDocument } from '@nodepool/requestor/http';

/** Time (ms) between attempts to reach the gateway. */
const RETRY_MS = 5000;

export class LeaseKeeper {
  private readonly loss = new AbortController();
  private readonly stopped = new AbortController();
  private readonly work: Promise<unknown>;

  constructor(
    private readonly client: LeaseClient,
    private readonly lease: LeaseDocument,
    private readonly clock: Clock,
  ) {
    this.work = Promise.all([this.repeat(() => this.renew()), this.repeat(() => this.watch())]);
  }

  /** Aborts when the node or the lease is lost, with the reason. An unreachable gateway is no loss. */
  get lost(): AbortSignal {
    return this.loss.signal;
  }

  async stop(): Promise<void> {
    this.stopped.abort();
    await this.work;
  }

  /** Resolves after asking the gateway once whether the node is lost; no answer counts as no loss. */
  async check(): Promise<void> {
    try {
      this.inspect(await this.client.get(this.lease.id, { signal: this.stopped.signal }));
    } catch (error) {
      if (isEnd(error)) this.loss.abort(error);
    }
  }

  /** Repeats until the lease is lost or the keeper stops. */
  private async repeat(step: () => Promise<void>): Promise<void> {
    const signal = AbortSignal.any([this.stopped.signal, this.lost]);
    while (!signal.aborted) {
      try {
        await step();
      } catch (error) {
        if (isEnd(error)) await this.check();
        await sleep(this.clock, RETRY_MS, signal).catch(() => undefined);
      }
    }
  }

  private async renew(): Promise<void> {
    const { signal } = this.stopped;
    await this.client.renew(this.lease.id, { signal });
    await sleep(this.clock, (this.lease.lifetime * 1000) / 3, AbortSignal.any([signal, this.lost]));
  }

  private async watch(): Promise<void> {
    const signal = AbortSignal.any([this.stopped.signal, this.lost]);
    for await (const lease of this.client.follow(this.lease.id, { signal })) this.inspect(lease);
  }

  private inspect(lease: LeaseDocument): void {
    const loss = lossOf(lease);
    if (loss !== undefined) this.loss.abort(new Error(loss));
  }
}

/** Returns true if the gateway refuses a request because the lease has ended. */
function isEnd(error: unknown): boolean {
  return error instanceof LeaseRequestError && (error.status === 404 || error.status === 409);
}

/** Returns the reason why the node of a lease must not be used any longer, or undefined. */
export function lossOf({ id, state, end, reasons, nodes }: LeaseDocument): string | undefined {
  const why = reasons.length === 0 ? '' : `: ${reasons.join('; ')}`;
  if (state === 'ending' || state === 'ended') return `lease ${id} has ended (${end?.reason ?? state})${why}`;
  const [node] = nodes;
  return node?.state === 'lost' ? `node ${node.id} is lost: ${node.reason ?? 'unknown reason'}` : undefined;
}
