/** State that every part of a simulated cloud shares. */

import { systemClock, systemRandom, type Clock, type RandomSource } from '@nodepool/core';

export interface SimulatedCloudOptions<S extends object> {
  /** Default: the system's. Boots, operations and latency happen on it; HTTP itself takes real time. */
  readonly clock?: Clock;
  /** Source of ids, and of faults that strike by chance. Default: the system's. */
  readonly random?: RandomSource;
  /** Port on 127.0.0.1. Default: a free one. */
  readonly port?: number;
  /** Default for each: the cloud's. */
  readonly settings?: Partial<S>;
}

export class CloudState<S extends object> {
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Address of the cloud, e.g. `http://127.0.0.1:20345`; empty before it listens. */
  url = '';
  private current: S;

  constructor({ clock = systemClock, random = systemRandom, settings }: SimulatedCloudOptions<S>, defaults: S) {
    this.clock = clock;
    this.random = random;
    this.current = { ...defaults, ...settings };
  }

  /** Settings as they are now. */
  get settings(): S {
    return this.current;
  }

  /** Changes how the cloud behaves from now on. */
  configure(changes: Partial<S>): void {
    this.current = { ...this.current, ...changes };
  }
}
