/** The deletion of one instance, retried while its failures are temporary. */

import type { JsonValue } from '../../model/json.js';
import type { ExternalId } from '../../model/node.js';
import { backOffMs } from '../../runtime/back-off.js';
import type { RandomSource } from '../../runtime/random.js';
import { ERROR_POLICIES, toDriverError, type DriverError } from '../errors.js';
import type { Advance, MachineCall, StateMachine } from '../state-machine-api.js';
import { ListingDeadline } from './attempt-lookup.js';
import { listedUnder, ownListing, type InstanceIdentity } from './instance-identity.js';

export interface PersistentDeletionOptions {
  readonly externalId: ExternalId;
  /** Identity of the instance; undefined if ids are unique. */
  readonly identity: InstanceIdentity | undefined;
  readonly saved: JsonValue;
  readonly random: RandomSource;
  /** Receives each failure after which the deletion is repeated. */
  readonly onFailedAttempt?: ((error: Error) => void) | undefined;
  /** Receives each new `waitsFor` of the adapter's machine. */
  readonly onWaiting?: ((reason: string) => void) | undefined;
  /** Creates a deletion machine of the adapter from saved state. */
  readonly make: (saved: JsonValue) => StateMachine;
}

/**
 * A machine that wraps the adapter's deletion machines. Treats an instance that is not found as deleted. After a
 * conflict, throttling or a temporary failure, continues after back-off with a machine created from the failed
 * machine's state. If ids are not unique, each machine is created only after a listing has shown the instance, and an
 * instance whose id belongs to another one counts as deleted.
 */
export class PersistentDeletion implements StateMachine {
  readonly externalId: ExternalId;
  private saved: JsonValue;
  private inner: StateMachine | undefined;
  private failures = 0;
  /** True if a listing was requested since the last failure. */
  private asked = false;
  private listingDeadline = new ListingDeadline();
  waitsFor: string | undefined;
  lastError: DriverError | undefined;

  constructor(private readonly options: PersistentDeletionOptions) {
    this.externalId = options.externalId;
    this.saved = options.saved;
  }

  get state(): string {
    return this.inner?.state ?? (this.failures === 0 ? 'start' : 'trying again');
  }

  advance(call: MachineCall): Advance {
    const { identity } = this.options;
    try {
      if (identity === undefined) return this.step(call);
      const listing = call.listing && ownListing(call.listing, identity);
      return this.identify(call, identity) ?? this.step({ ...call, listing });
    } catch (error) {
      return this.recover(toDriverError(error), call);
    }
  }

  save(): JsonValue {
    return this.inner === undefined ? this.saved : this.inner.save();
  }

  /** Returns undefined once the newest listing shows the instance under its id, or while a machine deletes it. */
  private identify({ listing, log }: MachineCall, identity: InstanceIdentity): Advance | undefined {
    const { externalId, inner } = this;
    const named = { external_id: externalId };
    if (listing === undefined || (inner === undefined && !this.asked)) {
      this.asked = true;
      return inner === undefined ? { next: 'listing' } : undefined;
    }
    const listed = listedUnder(listing, externalId, identity);
    if (listed === 'own' || (inner !== undefined && listed !== 'another')) return undefined;
    if (listed === 'both') this.listingDeadline.reset();
    // Before the deletion, a listing may still show a former owner of the id, and not yet the instance.
    else if (inner !== undefined || this.listingDeadline.missedIn(listing)) {
      if (listed === 'another') log.info('The instance is deleted: its id belongs to another one', named);
      return { next: 'complete' };
    }
    return { next: 'listing' };
  }

  private step(call: MachineCall): Advance {
    this.inner ??= this.options.make(this.saved);
    const advance = this.inner.advance(call);
    const { waitsFor } = this.inner;
    if (waitsFor !== undefined && waitsFor !== this.waitsFor) this.options.onWaiting?.(waitsFor);
    this.waitsFor = waitsFor;
    return advance;
  }

  private recover(error: DriverError, call: MachineCall): Advance {
    if (error.code === 'not-found') return { next: 'complete' };
    if (!ERROR_POLICIES[error.code].mayPass) throw error;
    this.saved = this.save();
    this.inner = undefined;
    this.asked = false;
    this.listingDeadline = new ListingDeadline();
    this.lastError = error;
    this.failures += 1;
    this.options.onFailedAttempt?.(error);
    call.onRetry?.(error);
    const ms = backOffMs(this.failures, error, this.options.random);
    call.log.info('A deletion failed; retrying', {
      error,
      failures: this.failures,
      retry_in_ms: Math.round(ms),
    });
    return { next: 'delay', ms };
  }
}
