/** One instance of the example cloud. */

import type { Clock, Timer } from '@nodepool/core';
import { addressesOf } from './addresses.js';
import { SshServer } from './ssh.js';
import type { CloudInstance, CloudInstanceState, InstanceSpec } from './types.js';

/** When an instance does what; `Clock.monotonic` milliseconds, Infinity: never. */
export interface Plan {
  readonly createdAt: number;
  readonly readyAt: number;
  readonly failsAt: number;
  readonly listedFrom: number;
}

/** What an instance occupies. */
export interface Place {
  readonly zone: string;
  readonly cores: number;
  readonly ram: number;
  /** A number of the `AddressPool`. */
  readonly address: number;
  /** Whether it listens for ssh, on this machine. */
  readonly ssh: boolean;
}

export class InstanceRecord {
  /** When it is gone; Infinity before it is deleted. */
  goneAt = Infinity;
  listedUntil = Infinity;
  /** Its quota and address were given back. */
  freed = false;
  private failure: string | undefined;
  private ssh: SshServer | undefined;
  private sshTimer: Timer | undefined;

  constructor(
    readonly id: string,
    /** Position in listings. */
    readonly sequence: number,
    readonly spec: InstanceSpec,
    readonly place: Place,
    readonly plan: Plan,
  ) {}

  /** Whether listings show it. */
  listed(now: number): boolean {
    return this.plan.listedFrom <= now && now < this.listedUntil;
  }

  describe(now: number): CloudInstance {
    const { spec, place } = this;
    const state = this.stateAt(now);
    return {
      id: this.id,
      name: spec.name,
      state,
      failure: state === 'failed' ? (this.failure ?? 'the kernel panicked while booting') : null,
      zone: place.zone,
      cores: place.cores,
      ram: place.ram,
      image: spec.image,
      tags: spec.tags,
      ...addressesOf(place.address, place.ssh),
      sshPort: this.ssh?.port ?? null,
    };
  }

  console(now: number): string {
    const first = `[    0.000000] Booting ${this.spec.image}: ${this.place.cores} cores, ${this.place.ram} MiB`;
    switch (this.stateAt(now)) {
      case 'building':
        return `${first}\n[    1.000000] Waiting for the root device\n`;
      case 'failed':
        return `${first}\n[    1.000000] Kernel panic - not syncing: no init found\n`;
      case 'running':
        return `${first}\n${this.spec.name} login:\n`;
      case 'deleting':
      case 'deleted':
        return `${first}\n[    9.000000] Power down\n`;
    }
  }

  /** Starts what listens, when it is time. */
  boot(clock: Clock): void {
    if (!this.place.ssh || this.plan.readyAt === Infinity) return;
    this.sshTimer = clock.schedule(
      this.plan.readyAt - clock.monotonic(),
      () => {
        this.ssh = new SshServer((error) => {
          this.failure = `its ssh server failed: ${error.message}`;
        });
      },
      { background: true },
    );
  }

  /** It fails now, and for good. */
  fail(reason: string): void {
    this.failure = reason;
    this.shutDown();
  }

  /** Stops what listens. */
  shutDown(): void {
    this.sshTimer?.cancel();
    this.ssh?.close();
    this.ssh = undefined;
  }

  private stateAt(now: number): CloudInstanceState {
    if (this.goneAt !== Infinity) return 'deleting';
    if (this.failure !== undefined || this.plan.failsAt <= now) return 'failed';
    if (this.plan.readyAt > now) return 'building';
    return this.place.ssh && this.ssh?.port === undefined ? 'building' : 'running';
  }
}
