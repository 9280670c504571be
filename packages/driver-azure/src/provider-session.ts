/** Objects that all state machines of a provider share. */

import type { Call, Clock, JsonValue, RandomSource } from '@nodepool/core';
import { CachedRead, isDriverError, retryPassing, sleep, TransientError } from '@nodepool/core';
import type { Accepted, Progress } from './client/arm.js';
import type { Client } from './client/client.js';
import type { VirtualMachine } from './client/types.js';
import type { AzureProvider } from './config.js';
import { groupIn, isCopy, nameIn, tagsOf } from './identity.js';
import { Lookups } from './lookups.js';

export class ProviderSession {
  readonly lookups: Lookups;
  /** Shared by deletions that search at the same time. */
  private readonly vms: CachedRead<readonly VirtualMachine[]>;

  constructor(
    readonly config: AzureProvider,
    readonly client: Client,
    readonly clock: Clock,
    readonly random: RandomSource,
    readonly makeCall: () => Call,
  ) {
    this.lookups = new Lookups(client, config.location, makeCall, clock);
    this.vms = new CachedRead((call) => client.listVms(call), makeCall, clock, 0);
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

  /** Resolves with the resource group of a VM outside the provider's; its name must contain the launch attempt. */
  async otherGroupOf(vmName: string): Promise<string | undefined> {
    const { name: provider, resourceGroup } = this.config;
    const found = (await this.vms.read()).find((vm) => {
      const { nodepool_provider_name: owner, nodepool_launch_attempt: attempt } = tagsOf(vm);
      const ours = owner === provider && attempt !== undefined && vmName.endsWith(`-${attempt}`) && !isCopy(vm);
      return ours && (vm.name ?? nameIn(vm.id)) === vmName && groupIn(vm.id) !== resourceGroup.toLowerCase();
    });
    return groupIn(found?.id);
  }

  /**
   * Waits for an operation outside of state machines and resolves with its result. Rejects if the operation fails. A
   * missing operation is a temporary failure, because it does not mean that the resource is missing.
   */
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
      const progress = await this.withRetries(() => this.progress(what, url, call), call);
      onAnswer?.();
      if (progress.status === 'failed') throw progress.error;
      if (progress.status === 'succeeded') return progress.result;
      waitMs = progress.retryAfterMs;
    }
  }

  private async progress(what: string, url: string, call: Call): Promise<Progress> {
    try {
      return await this.client.progress(what, url, call);
    } catch (error) {
      if (!isDriverError(error) || error.code !== 'not-found') throw error;
      throw new TransientError(`${what}: ${error.message}`, { outcome: 'unknown', cause: error });
    }
  }

  /** Retries idempotent work a few times after temporary failures. */
  withRetries<T>(work: () => Promise<T>, { signal }: Call, attempts?: number): Promise<T> {
    const { clock, random } = this;
    return retryPassing({ clock, random, signal, attempts }, work);
  }
}
