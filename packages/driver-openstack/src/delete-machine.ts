/**
 * State machine that deletes a server and its floating IPs. The server's volume is deleted with it, as requested at its
 * creation.
 *
 *     start ──> detaching ──> deleting ──> leaving ──> confirming ──> gone
 *                                 ^           │            │
 *                                 └─ ERROR ───┘<─ not yet ─┘
 *
 * Deletion is idempotent, so a restored machine starts over, and an error ends the machine: the framework retries with
 * a new one. The node's record is removed when this machine completes. The machine completes only when a query for the
 * server confirms the deletion, because a listing may be outdated, or may lack a part of the cloud that is down.
 */

import type { Advance, Call, ExternalId, JsonValue, MachineCall, StateMachine } from '@nodepool/core';
import { isDriverError, logCloudDeletion, NotFoundError, PendingCall } from '@nodepool/core';
import { serverOf } from './instance.js';
import type { ProviderSession } from './provider-session.js';

/** Time after which a deletion that seems to have been lost is repeated (ms); doubled each time. */
const FIRST_REPEAT_MS = 5000;
const MAX_REPEAT_MS = 60_000;

const FRESH_LISTING: Advance = { next: 'listing' };

export class DeleteMachine implements StateMachine {
  state: 'start' | 'detaching' | 'deleting' | 'leaving' | 'confirming' | 'gone' = 'start';
  private readonly pending = new PendingCall<'accepted' | 'gone'>();
  waitsFor: string | undefined;
  private repeatMs = FIRST_REPEAT_MS;
  /** `Clock.monotonic` time (ms) of the last accepted deletion. */
  private askedAt = 0;

  constructor(
    private readonly session: ProviderSession,
    readonly externalId: ExternalId,
  ) {}

  advance(call: MachineCall): Advance {
    switch (this.state) {
      case 'start':
        this.state = 'detaching';
        return this.pending.start(this.detach(call));
      case 'detaching':
        return this.pending.underway ?? this.afterDetaching(call);
      case 'deleting':
        return this.pending.underway ?? this.afterDeletion();
      case 'leaving':
        return this.watch(call);
      case 'confirming':
        return this.pending.underway ?? this.afterConfirmation();
      case 'gone':
        return { next: 'complete' };
    }
  }

  /** Returns an empty state, because a deletion can safely start over. */
  save(): JsonValue {
    return null;
  }

  private get serverId(): string {
    if (typeof this.externalId === 'string') return this.externalId;
    throw new NotFoundError(`${JSON.stringify(this.externalId)} is not the id of a server`);
  }

  /** Deletes floating IPs first, because they cannot be found without their port. */
  private async detach(call: Call): Promise<'accepted'> {
    const { serverId, session } = this;
    if (!(await session.usesFloatingIps())) return 'accepted';
    const floatingIps = await session.floatingIpsOf(serverId);
    await Promise.all(
      floatingIps.map(({ id, address }) => {
        logCloudDeletion(call.log, { kind: 'floating-ip', externalId: id, name: address }, 'its server is deleted');
        return unlessGone(session.client.network.deleteFloatingIp(id, call));
      }),
    );
    return 'accepted';
  }

  private afterDetaching(call: MachineCall): Advance {
    this.pending.take();
    return this.askForDeletion(call);
  }

  private askForDeletion(call: MachineCall): Advance {
    this.state = 'deleting';
    return this.pending.start(unlessGone(this.session.client.compute.deleteServer(this.serverId, call)));
  }

  private afterDeletion(): Advance {
    if (this.pending.take() === 'gone') return this.finish();
    this.askedAt = this.session.clock.monotonic();
    this.state = 'leaving';
    return FRESH_LISTING;
  }

  private watch(call: MachineCall): Advance {
    const { listing } = call;
    if (listing === undefined || listing.askedAt < this.askedAt) return FRESH_LISTING;
    const instance = listing.byExternalId(this.externalId);
    if (instance === undefined || instance.deleted) {
      this.state = 'confirming';
      return this.pending.start(this.confirm(call));
    }
    // A failed deletion leaves the server in ERROR; a lost one leaves it unchanged.
    const server = serverOf(instance);
    const forgotten = server?.task !== 'deleting';
    if (server !== undefined && listing.askedAt - this.askedAt >= MAX_REPEAT_MS) {
      this.waitsFor = `nova has accepted the deletion; the server is ${server.status}, task state ${server.task ?? 'none'}`;
    }
    if (!forgotten || listing.askedAt - this.askedAt < this.repeatMs) return FRESH_LISTING;
    this.repeatMs = Math.min(2 * this.repeatMs, MAX_REPEAT_MS);
    return this.askForDeletion(call);
  }

  private async confirm(call: Call): Promise<'accepted' | 'gone'> {
    try {
      const { status } = await this.session.client.compute.getServer(this.serverId, call);
      return status === 'DELETED' || status === 'SOFT_DELETED' ? 'gone' : 'accepted';
    } catch (error) {
      if (isDriverError(error) && error.code === 'not-found') return 'gone';
      throw error;
    }
  }

  private afterConfirmation(): Advance {
    if (this.pending.take() === 'gone') return this.finish();
    this.state = 'leaving';
    return FRESH_LISTING;
  }

  private finish(): Advance {
    this.state = 'gone';
    return { next: 'complete' };
  }
}

/** Resolves with `gone` if the resource does not exist. */
async function unlessGone(deletion: Promise<void>): Promise<'accepted' | 'gone'> {
  try {
    await deletion;
    return 'accepted';
  } catch (error) {
    if (isDriverError(error) && error.code === 'not-found') return 'gone';
    throw error;
  }
}
