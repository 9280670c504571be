/**
 * State machine that deletes an instance, and the dedicated host that was allocated for it.
 *
 *     start ──> terminating ──> leaving ──> releasing ──> gone
 *                 ^               │             ^
 *                 └─ still there ─┘   a host ───┘
 *
 * Lists lag behind: neither an error "not found" nor a list without the instance proves the deletion of a new one.
 * Several lists over some time have to agree, unless a list shows the instance as terminated. Volumes and interface end
 * with the instance.
 */

import {
  isDriverError,
  ListingDeadline,
  NotFoundError,
  PendingCall,
  type Advance,
  type Call,
  type ExternalId,
  type JsonValue,
  type Listing,
  type MachineCall,
  type StateMachine,
} from '@nodepool/core';
import { errorOfCode } from './errors.js';
import { isHostId, isStopped } from './instance.js';
import type { ProviderSession } from './session.js';

const SETTLING = { settleRounds: 3, settleMs: 20_000 } as const;
const FRESH_LISTING: Advance = { next: 'listing' };
/** Time after which an accepted termination without an effect is repeated (ms). */
const REPEAT_MS = 60_000;
/** Interval between attempts to release a host whose instance has just ended (ms). */
const RELEASE_INTERVAL_MS = 5000;

type ReleaseResult = 'released' | 'occupied';

export class DeleteMachine implements StateMachine {
  state: 'start' | 'terminating' | 'leaving' | 'releasing' | 'gone' = 'start';
  private readonly termination = new PendingCall<string | undefined>();
  private readonly release = new PendingCall<ReleaseResult>();
  private readonly listingDeadline = new ListingDeadline(SETTLING);
  private terminatedAt = 0;
  /** Launch attempt of the instance if it has a host of its own. */
  private attemptOnHost: string | undefined;
  private hosts: string[] = [];

  constructor(
    private readonly session: ProviderSession,
    readonly externalId: ExternalId,
  ) {
    if (isHostId(externalId)) {
      this.hosts = [externalId];
      this.state = 'releasing';
    }
  }

  advance(call: MachineCall): Advance {
    switch (this.state) {
      case 'start':
        return this.terminate();
      case 'terminating':
        return this.termination.underway ?? this.afterTermination();
      case 'leaving':
        return this.watch(call);
      case 'releasing':
        return this.release.underway ?? this.releaseNext(call);
      case 'gone':
        return { next: 'complete' };
    }
  }

  /** Returns null: a deletion can safely restart, so there is no state to save. */
  save(): JsonValue {
    return null;
  }

  private terminate(): Advance {
    const { externalId } = this;
    this.state = 'terminating';
    this.terminatedAt = this.session.clock.monotonic();
    if (typeof externalId === 'string') this.session.names.forget(externalId);
    return this.termination.start(
      typeof externalId === 'string'
        ? this.session.terminations.terminate(externalId)
        : Promise.reject(new NotFoundError(`${JSON.stringify(externalId)} is not the id of an instance of EC2`)),
    );
  }

  private afterTermination(): Advance {
    this.state = 'leaving';
    try {
      const state = this.termination.take();
      if (state === 'terminated' && !this.session.usesHosts) return this.finish();
    } catch (error) {
      if (!isDriverError(error) || error.code !== 'not-found') throw error;
      // Lists decide, since EC2 may not know a new instance yet.
      this.terminatedAt = -Infinity;
    }
    return FRESH_LISTING;
  }

  private watch(call: MachineCall): Advance {
    const { listing } = call;
    if (listing === undefined) return FRESH_LISTING;
    const instance = listing.byExternalId(this.externalId);
    if (instance === undefined) {
      return this.listingDeadline.missedIn(listing) ? this.afterInstance(listing, call) : FRESH_LISTING;
    }
    this.listingDeadline.reset();
    if (instance.hostId !== undefined) this.attemptOnHost = instance.tags['nodepool_launch_attempt'];
    if (instance.deleted) return this.afterInstance(listing, call);
    const isEnding = instance.failed !== undefined && !isStopped(instance);
    if (!isEnding && this.session.clock.monotonic() - this.terminatedAt > REPEAT_MS) return this.terminate();
    return FRESH_LISTING;
  }

  /** Releases the hosts that have the launch attempt of the instance. */
  private afterInstance(listing: Listing, call: MachineCall): Advance {
    const attempt = this.attemptOnHost;
    if (attempt === undefined) return this.finish();
    this.hosts = listing
      .byTag('nodepool_launch_attempt', attempt)
      .filter(({ deleted }) => !deleted)
      .flatMap(({ externalId }) => (isHostId(externalId) ? [externalId] : []));
    this.state = 'releasing';
    return this.releaseNext(call);
  }

  private releaseNext(call: MachineCall): Advance {
    if (this.release.settled) {
      if (this.release.take() === 'occupied') return { next: 'delay', ms: RELEASE_INTERVAL_MS };
      this.hosts.shift();
    }
    const [host] = this.hosts;
    return host === undefined ? this.finish() : this.release.start(this.releaseHost(host, call));
  }

  private async releaseHost(id: string, call: Call): Promise<ReleaseResult> {
    const refusal = await this.session.ec2.releaseHost(id, call).catch((error: unknown) => {
      if (isDriverError(error) && error.code === 'not-found') return undefined;
      throw error;
    });
    if (refusal === undefined || /NotFound/.test(refusal.code)) return 'released';
    if (/Occupied|InUse|InvalidState|IncorrectState/.test(refusal.code)) return 'occupied';
    throw errorOfCode('ec2 ReleaseHosts', refusal.code, refusal.text);
  }

  private finish(): Advance {
    this.state = 'gone';
    return { next: 'complete' };
  }
}
