import { DriverError } from '../errors.js';
import type { Advance } from '../state-machine-api.js';

type State<T> =
  | { readonly kind: 'none' }
  | { readonly kind: 'underway'; readonly advance: Advance }
  | { readonly kind: 'resolved'; readonly value: T }
  | { readonly kind: 'rejected'; readonly error: unknown };

/**
 * Holds the promise of a call for a machine, which must return immediately. The machine calls `start` in one step,
 * returns its result, and calls `take` in the next step.
 */
export class PendingCall<T> {
  private state: State<T> = { kind: 'none' };

  /** True if the call has ended and its result was not taken yet. */
  get settled(): boolean {
    return this.state.kind === 'resolved' || this.state.kind === 'rejected';
  }

  /** Watches the call. Returns the value that `advance` must return. */
  start(call: Promise<T>): Advance {
    if (this.state.kind === 'underway') {
      throw new DriverError('unexpected', 'a machine started a call while another one was under way');
    }
    const settled = call.then(
      (value) => {
        this.state = { kind: 'resolved', value };
      },
      (error: unknown) => {
        this.state = { kind: 'rejected', error };
      },
    );
    const advance: Advance = { next: 'call', settled };
    this.state = { kind: 'underway', advance };
    return advance;
  }

  /** The value that `advance` must return while the call is in progress; undefined if there is no call. */
  get underway(): Advance | undefined {
    return this.state.kind === 'underway' ? this.state.advance : undefined;
  }

  /** Returns the result of a settled call once. Throws the error with which the call rejected. */
  take(): T {
    const { state } = this;
    if (state.kind !== 'resolved' && state.kind !== 'rejected') {
      throw new DriverError('unexpected', 'a machine asked for the result of a call that has not ended');
    }
    this.state = { kind: 'none' };
    if (state.kind === 'rejected') throw state.error;
    return state.value;
  }
}
