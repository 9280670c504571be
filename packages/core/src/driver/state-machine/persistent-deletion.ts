/** The deletion of one instance, retried while its failures are temporary. */

import type { JsonValue } from '../../model/json.js';
import type { ExternalId } from '../../model/node.js';
import { backOffMs } from '../../runtime/back-off.js';
import type { RandomSource } from '../../runtime/random.js';
import { ERROR_POLICIES, toDriverError, type DriverError } from '../errors.js';
import type { Advance, MachineCall, StateMachine } from '../state-machine-api.js';

/** Creates a deletion machine of the adapter from saved state. */
export type MakeDeletion = (saved: JsonValue) => StateMachine;

/**
 * A machine that wraps the adapter's deletion machines. Treats an instance that is not found as deleted. After a
 * conflict, throttling or a temporary failure, continues after back-off with a machine created from the failed
 * machine's state.
 */
export class PersistentDeletion implements StateMachine {
  private inner: StateMachine | undefined;
  private failures = 0;
  /** Error of the latest attempt. */
  lastError: DriverError | undefined;
  complete = false;

  constructor(
    readonly externalId: ExternalId,
    private saved: JsonValue,
    private readonly random: RandomSource,
    private readonly make: MakeDeletion,
    private readonly onFailedAttempt: ((error: Error) => void) | undefined,
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
    this.onFailedAttempt?.(error);
    const ms = backOffMs(this.failures, error, this.random);
    call.log.info('A deletion failed; retrying', {
      error,
      failures: this.failures,
      retry_in_ms: Math.round(ms),
    });
    return { next: 'delay', ms };
  }
}
