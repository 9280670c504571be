/** The deletion of one instance, tried again as long as its failures may pass. */

import type { JsonValue } from '../../model/json.js';
import type { ExternalId } from '../../model/node.js';
import { backOffMs } from '../../runtime/back-off.js';
import type { RandomSource } from '../../runtime/random.js';
import { ERROR_POLICIES, toDriverError, type DriverError } from '../errors.js';
import type { Advance, MachineCall, StateMachine } from '../state-machine-api.js';

/** Makes a deletion machine of the adapter's, from what another one had saved. */
export type MakeDeletion = (saved: JsonValue) => StateMachine;

/**
 * A machine around the adapter's: an instance that is not found is deleted; conflicts, throttling and failures that pass
 * are tried again with back-off, by a machine that goes on from where the failed one was.
 */
export class PersistentDeletion implements StateMachine {
  private inner: StateMachine | undefined;
  private failures = 0;
  /** What the last try failed with. */
  lastError: DriverError | undefined;
  complete = false;

  constructor(
    readonly externalId: ExternalId,
    private saved: JsonValue,
    private readonly random: RandomSource,
    private readonly make: MakeDeletion,
  ) {}

  get state(): string {
    return this.inner?.state ?? (this.failures === 0 ? 'start' : 'trying again');
  }

  advance(call: MachineCall): Advance {
    try {
      this.inner ??= this.make(this.saved);
      const advance = this.inner.advance(call);
      if (advance.next === 'complete') this.complete = true;
      return advance;
    } catch (error) {
      return this.recover(toDriverError(error), call);
    }
  }

  save(): JsonValue {
    return this.inner === undefined ? this.saved : this.inner.save();
  }

  private recover(error: DriverError, call: MachineCall): Advance {
    if (error.code === 'not-found') {
      this.complete = true;
      return { next: 'complete' };
    }
    if (!ERROR_POLICIES[error.code].mayPass) throw error;
    this.saved = this.save();
    this.inner = undefined;
    this.lastError = error;
    this.failures += 1;
    const ms = backOffMs(this.failures, error, this.random);
    call.log.info('a deletion failed and is tried again', {
      error,
      failures: this.failures,
      retry_in_ms: Math.round(ms),
    });
    return { next: 'delay', ms };
  }
}
