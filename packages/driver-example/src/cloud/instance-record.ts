/** One instance of the example cloud. */

import type { Clock, Timer } from '@nodepool/core';
import { addressesOf } from './addresses.js';
import { SshServer } from './ssh.js';
import type { CloudInstance, CloudInstanceState, InstanceSpec } from './types.js';

/** Times of the events of an instance, in `Clock.monotonic` milliseconds; `Infinity` for never. */
export interface Plan {
  readonly createdAt: number;
  readonly readyAt: number;
  readonly failsAt: number;
  readonly listedFrom: number;
}

export interface Place {
  readonly zone: string;
  readonly cores: number;
  readonly ram: number;
  /** A number of the `AddressPool`. */
  readonly address: number;
  /** True if the instance listens for ssh on this machine. */
  readonly ssh: boolean;
  /** File of the keys that may log in; undefined if no login is possible. */
  readonly authorizedKeys: string | undefined;
}

export class InstanceRecord {
  /** Time at which the deletion is complete; `Infinity` before the deletion. */
  goneAt = Infinity;
  listedUntil = Infinity;
  /** True once the quota and the address are released. */
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

  /** Returns true if listings show the instance. */
  listed(now: number): boolean {
    return this.plan.listedFrom <= now && now < this.listedUntil;
  }

  describe(now: number, state = this.stateAt(now)): CloudInstance {
    const { spec, place } = this;
    const { publicIpv4, privateIpv4, publicIpv6 } = addressesOf(place.address, place.ssh);
    return {
      id: this.id,
      name: spec.name,
      state,
      failure: state === 'failed' ? (this.failure ?? 'the kernel panicked while booting') : null,
      zone: place.zone,
      size: this.spec.size,
      cores: place.cores,
      ram: place.ram,
      image: spec.image,
      tags: spec.tags,
      publicIpv4,
      privateIpv4,
      publicIpv6,
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

  /** Starts the ssh server at the time at which the instance is ready. */
  boot(clock: Clock): void {
    if (!this.place.ssh || this.plan.readyAt === Infinity) return;
    this.sshTimer = clock.schedule(
      this.plan.readyAt - clock.monotonic(),
      () => {
        this.ssh = this.startSsh();
      },
      { background: true },
    );
  }

  private startSsh(): SshServer | undefined {
    const onFailure = (error: Error): void => void (this.failure = `its ssh server failed: ${error.message}`);
    try {
      return new SshServer(this.place.authorizedKeys, onFailure);
    } catch (error) {
      onFailure(error instanceof Error ? error : new Error(String(error)));
      return undefined;
    }
  }

  fail(reason: string): void {
    this.failure = reason;
    this.shutDown();
  }

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
