import type { Clock } from '../runtime/clock.js';
import type { Call } from './call.js';

/** Creates calls that several callers share and that end with the provider instead of with one caller. */
export type MakeCall = () => Call;

/**
 * Caches a value that rarely changes until it expires or `forget` is called. Concurrent readers share one load, and a
 * failure is not cached.
 */
export class CachedRead<T> {
  private kept: { readonly value: T; readonly at: number } | undefined;
  private flight: Promise<T> | undefined;
  private forgotten = false;

  constructor(
    private readonly load: (call: Call) => Promise<T>,
    private readonly makeCall: MakeCall,
    private readonly clock: Clock,
    private readonly maxAgeMs: number,
  ) {}

  /** The last value that was read, even if it has expired; undefined if there is none yet. */
  get latest(): T | undefined {
    return this.kept?.value;
  }

  /** `maxAgeMs` is the maximum age of the value, if lower than the default (ms). */
  async read(maxAgeMs = this.maxAgeMs): Promise<T> {
    const { kept } = this;
    if (kept !== undefined && !this.forgotten && this.clock.monotonic() - kept.at < maxAgeMs) return kept.value;
    this.flight ??= this.start();
    return this.flight;
  }

  /** Invalidates the value. The next caller starts a new read. */
  forget(): void {
    this.forgotten = true;
    this.flight = undefined;
  }

  private start(): Promise<T> {
    const at = this.clock.monotonic();
    const flight = this.load(this.makeCall())
      .then((value) => {
        if (this.flight === flight) {
          this.kept = { value, at };
          this.forgotten = false;
        }
        return value;
      })
      .finally(() => {
        if (this.flight === flight) this.flight = undefined;
      });
    return flight;
  }
}
