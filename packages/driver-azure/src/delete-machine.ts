/**
 * State machine that deletes a VM. Azure deletes its interface, disk and addresses with it, as requested at its
 * creation.
 *
 *     start ──> deleting ──> following ──> confirming ──> gone
 *                  ^                           │
 *                  └────────── still there ────┘
 *
 * Deletion is idempotent, so an error ends the machine and the framework retries with a new one. The node's record is
 * removed when this machine completes, so the machine finally verifies by name that the VM is deleted.
 */

import {
  isDriverError,
  isJsonObject,
  PendingCall,
  stringAt,
  type Advance,
  type Call,
  type ExternalId,
  type JsonValue,
  type MachineCall,
  type StateMachine,
} from '@nodepool/core';
import type { Accepted, Progress } from './client/arm.js';
import { nameOf } from './instance.js';
import type { ProviderSession } from './provider-session.js';

/** Interval between queries for a VM that is being deleted (ms). */
const POLL_INTERVAL_MS = 5000;

export class DeleteMachine implements StateMachine {
  state: 'start' | 'deleting' | 'following' | 'confirming' | 'gone' = 'start';
  private readonly deletion = new PendingCall<Accepted>();
  private readonly following = new PendingCall<Progress>();
  private readonly confirmation = new PendingCall<'gone' | 'going' | 'there'>();
  private operationUrl: string | undefined;
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
        return this.deletion.start(this.session.client.deleteVm(this.name, call));
      case 'deleting':
        return this.deletion.underway ?? this.afterDeletion(call);
      case 'following':
        return this.following.underway ?? this.follow(call);
      case 'confirming':
        return this.confirmation.underway ?? this.confirm(call);
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
      if (progress.status === 'running') return { next: 'delay', ms: progress.retryAfterMs };
      this.operationUrl = undefined;
      if (progress.status === 'failed') throw progress.error;
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
      const { properties } = await this.session.client.getVm(this.name, call);
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
    if (answer === 'there') this.state = 'start';
    return { next: 'delay', ms: POLL_INTERVAL_MS };
  }

  private finish(): Advance {
    this.state = 'gone';
    return { next: 'complete' };
  }
}
