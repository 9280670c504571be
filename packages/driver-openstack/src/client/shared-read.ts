import { sleep, type Call, type Clock, type MakeCall } from '@nodepool/core';

/** Time that a read waits for more callers to join (ms). */
const GATHER_MS = 50;

/** One read for all concurrent callers, without caching: a caller only gets data that was read after its request. */
export class FreshRead<T> {
  /** The read that callers can still join. A read in progress may have missed recent changes. */
  private gathering: Promise<T> | undefined;
  private flight: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly load: (call: Call) => Promise<T>,
    private readonly makeCall: MakeCall,
    private readonly clock: Clock,
  ) {}

  read(): Promise<T> {
    this.gathering ??= this.gather(this.flight);
    return this.gathering;
  }

  private async gather(before: Promise<unknown>): Promise<T> {
    await sleep(this.clock, GATHER_MS, this.makeCall().signal);
    await Promise.allSettled([before]);
    this.gathering = undefined;
    const flight = this.load(this.makeCall());
    this.flight = flight;
    return flight;
  }
}
