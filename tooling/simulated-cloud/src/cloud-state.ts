/** State that all parts of a simulated cloud share. */

import { systemClock, systemRandom, type Clock, type RandomSource } from '@nodepool/core';

export interface SimulatedCloudOptions<S extends object> {
  /** Default: the system's. Boots, operations and latency use it; HTTP itself takes real time. */
  readonly clock?: Clock;
  /** Source of ids and of random faults. Default: the system's. */
  readonly random?: RandomSource;
  /** Port on 127.0.0.1. Default: a free one. */
  readonly port?: number;
  /** Overrides the cloud's defaults. */
  readonly settings?: Partial<S>;
}

export class CloudState<S extends object> {
  readonly clock: Clock;
  readonly random: RandomSource;
  /** URL of the cloud, e.g. `http://127.0.0.1:20345`; empty until it listens. */
  url = '';
  private current: S;

  constructor({ clock = systemClock, random = systemRandom, settings }: SimulatedCloudOptions<S>, defaults: S) {
    this.clock = clock;
    this.random = random;
    this.current = { ...defaults, ...settings };
  }

  /** Current settings. */
  get settings(): S {
    return this.current;
  }

  /** Changes settings from now on. */
  configure(changes: Partial<S>): void {
    this.current = { ...this.current, ...changes };
  }
}
