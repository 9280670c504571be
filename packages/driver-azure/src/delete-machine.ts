/**
 * State machine that deletes a VM. Azure deletes its interface, disk and addresses with it, as requested at its
 * creation.
 *
 *     start ──> deleting ──> following ──> confirming ──> gone
 *       ^                                   │  │           ^
 *       │<────────────── still there ───────┘  v           │
 *       └<─ in a former resource group ─── searching ──────┘
 *
 * Deletion is idempotent, so an error ends the machine and the framework retries with a new one. The node's record is
 * removed when this machine completes, so the machine finally verifies by name that the VM is deleted. If Azure did not
 * know the VM from the start, the machine searches for it in the other resource groups, because that of the provider
 * may have been changed.
 */

import type { Advance, Call, ExternalId, JsonValue, MachineCall, StateMachine } from '@nodepool/core';
import { isDriverError, isJsonObject, PendingCall, stringAt } from '@nodepool/core';
import type { Accepted, Progress } from './client/arm.js';
import { nameOf } from './instance.js';
import type { ProviderSession } from './provider-session.js';

/** Time after which a deletion in progress is reported (ms). */
const REPORT_MS = 60_000;
/** Interval between queries for a VM that is being deleted (ms). */
const POLL_INTERVAL_MS = 5000;

export class DeleteMachine implements StateMachine {
  state: 'start' | 'deleting' | 'following' | 'confirming' | 'searching' | 'gone' = 'start';
  private readonly deletion = new PendingCall<Accepted>();
  private readonly following = new PendingCall<Progress>();
  private readonly confirmation = new PendingCall<'gone' | 'going' | 'there'>();
  private readonly search = new PendingCall<string | undefined>();
  waitsFor: string | undefined;
  private operationUrl: string | undefined;
  private followedSince: number | undefined;
  /** The VM's resource group if it is not that of the provider. */
  private group: string | undefined;
  private deleted = false;
  private readonly name: string;

  constructor(
    private readonly session: ProviderSession,
    readonly externalId: ExternalId,
    saved: JsonValue,
  ) {
    this.name = nameOf(externalId);
    this.operationUrl = isJsonObject(saved) ? stringAt(saved, 'operation') : undefined;
    if (this.operationUrl !== undefined) this.state = 'following';
  }

  advance(call: MachineCall): Advance {
    switch (this.state) {
      case 'start':
        this.state = 'deleting';
        return this.deletion.start(this.session.client.deleteVm(this.name, call, this.group));
      case 'deleting':
        return this.deletion.underway ?? this.afterDeletion(call);
      case 'following':
        return this.following.underway ?? this.follow(call);
      case 'confirming':
        return this.confirmation.underway ?? this.confirm(call);
      case 'searching':
        return this.search.underway ?? this.afterSearch(call);
      case 'gone':
        return { next: 'complete' };
    }
  }

  save(): JsonValue {
    return this.operationUrl === undefined ? null : { operation: this.operationUrl };
  }

  private afterDeletion(call: MachineCall): Advance {
    let accepted: Accepted;
    try {
      accepted = this.deletion.take();
    } catch (error) {
      if (isDriverError(error) && error.code === 'not-found') return this.finish();
      throw error;
    }
    this.operationUrl = accepted.url;
    if (accepted.url === undefined) return this.startConfirmation(call);
    this.state = 'following';
    return { next: 'delay', ms: accepted.retryAfterMs };
  }

  private follow(call: MachineCall): Advance {
    const { client } = this.session;
    if (!this.following.settled)
      return this.following.start(client.progress(`deletion of VM ${this.name}`, this.operationUrl ?? '', call));
    try {
      const progress = this.following.take();
      if (progress.status === 'running') {
        const now = this.session.clock.monotonic();
        this.followedSince ??= now;
        if (now - this.followedSince >= REPORT_MS) {
          this.waitsFor = `Azure has accepted the deletion of VM ${this.name}, and its operation is in progress`;
        }
        return { next: 'delay', ms: progress.retryAfterMs };
      }
      this.operationUrl = undefined;
      if (progress.status === 'failed') throw progress.error;
      this.deleted = true;
    } catch (error) {
      // Azure deletes operations after a while; the VM itself shows the outcome.
      if (!isDriverError(error) || error.code !== 'not-found') throw error;
      this.operationUrl = undefined;
    }
    return this.startConfirmation(call);
  }

  private startConfirmation(call: MachineCall): Advance {
    this.state = 'confirming';
    return this.confirmation.start(this.ask(call));
  }

  private async ask(call: Call): Promise<'gone' | 'going' | 'there'> {
    try {
      const { properties } = await this.session.client.getVm(this.name, call, undefined, this.group);
      return properties?.provisioningState === 'Deleting' ? 'going' : 'there';
    } catch (error) {
      if (isDriverError(error) && error.code === 'not-found') return 'gone';
      throw error;
    }
  }

  private confirm(call: MachineCall): Advance {
    if (!this.confirmation.settled) return this.startConfirmation(call);
    const answer = this.confirmation.take();
    if (answer === 'gone') return this.finish();
    if (answer === 'going') this.waitsFor = `VM ${this.name} has the provisioning state Deleting`;
    if (answer === 'there') this.state = 'start';
    return { next: 'delay', ms: POLL_INTERVAL_MS };
  }

  private finish(): Advance {
    if (!this.deleted) {
      this.state = 'searching';
      return this.search.start(this.session.otherGroupOf(this.name));
    }
    this.state = 'gone';
    return { next: 'complete' };
  }

  private afterSearch(call: MachineCall): Advance {
    const last = this.group;
    this.group = this.search.take();
    this.deleted = this.group === undefined;
    if (this.deleted) return this.finish();
    call.log.info('Deleting a VM in its former resource group', { external_id: this.name, resource_group: this.group });
    this.state = 'start';
    // The list may still contain a VM that was just deleted.
    return this.group === last ? { next: 'delay', ms: POLL_INTERVAL_MS } : this.advance(call);
  }
}
