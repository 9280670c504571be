/** Objects that all state machines of a provider share. */

import { retryPassing, sleep, type Call, type Clock, type JsonValue, type RandomSource } from '@nodepool/core';
import type { Accepted } from './client/arm.js';
import type { Client } from './client/client.js';
import type { AzureProvider } from './config.js';
import { Lookups } from './lookups.js';

export class ProviderSession {
  readonly lookups: Lookups;

  constructor(
    readonly config: AzureProvider,
    readonly client: Client,
    readonly clock: Clock,
    readonly random: RandomSource,
    readonly makeCall: () => Call,
  ) {
    this.lookups = new Lookups(client, config.location, makeCall, clock);
  }

  get subnetId(): string {
    const { subnet } = this.config;
    return 'id' in subnet ? subnet.id : `/subscriptions/${this.client.arm.subscriptionId}/${subnet.path}`;
  }

  /** Returns the id of a compute resource in this provider's group. */
  computeId(kind: 'disks' | 'images', name: string): string {
    const { subscriptionId } = this.client.arm;
    return `/subscriptions/${subscriptionId}/resourceGroups/${this.config.resourceGroup}/providers/Microsoft.Compute/${kind}/${name}`;
  }

  /** Waits for an operation outside of state machines and resolves with its result. Rejects if the operation fails. */
  async finished(
    what: string,
    started: Promise<Accepted>,
    call: Call,
    onAnswer?: () => void,
  ): Promise<JsonValue | undefined> {
    const { url, retryAfterMs } = await started;
    if (url === undefined) return undefined;
    for (let waitMs = retryAfterMs; ;) {
      await sleep(this.clock, waitMs, call.signal);
      const progress = await this.withRetries(() => this.client.progress(what, url, call), call);
      onAnswer?.();
      if (progress.status === 'failed') throw progress.error;
      if (progress.status === 'succeeded') return progress.result;
      waitMs = progress.retryAfterMs;
    }
  }

  /** Retries idempotent work a few times after temporary failures. */
  withRetries<T>(work: () => Promise<T>, { signal }: Call, attempts?: number): Promise<T> {
    const { clock, random } = this;
    return retryPassing({ clock, random, signal, attempts }, work);
  }
}
