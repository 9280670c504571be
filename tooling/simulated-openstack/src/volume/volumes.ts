/** The volumes of cinder, without data. */

import type { Timer } from '@nodepool/core';
import type { OpenStackState } from '../cloud-state.js';
import { newUuid } from '../text.js';
import { Table, type Owned } from '../table.js';

export type VolumeStatus = 'creating' | 'available' | 'in-use' | 'deleting' | 'error' | 'error_deleting';

export interface VolumeRecord extends Owned {
  readonly userId: string;
  name: string | null;
  description: string | null;
  readonly sizeGb: number;
  readonly imageId: string | null;
  /** Properties of the image, which cinder copies. */
  readonly imageProperties: ReadonlyMap<string, string>;
  metadata: Readonly<Record<string, string>>;
  status: VolumeStatus;
  updatedAt: number | null;
  /** The server that uses it, and the time of attachment. */
  attachment: {
    readonly serverId: string;
    readonly id: string;
    readonly at: number;
    /** e.g. `/dev/sda`. */
    readonly device: string;
  } | null;
  timer: Timer | undefined;
}

export type NewVolume = Pick<
  VolumeRecord,
  'project' | 'userId' | 'name' | 'description' | 'sizeGb' | 'imageId' | 'imageProperties' | 'metadata'
>;

export class VolumeStore {
  readonly table = new Table<VolumeRecord>();

  constructor(private readonly state: OpenStackState) {}

  /** Starts to create a volume. Its metadata determines the outcome: see the README. */
  create(spec: NewVolume): VolumeRecord {
    const volume: VolumeRecord = {
      ...spec,
      id: newUuid(this.state.random),
      createdAt: this.state.clock.now(),
      status: 'creating',
      updatedAt: null,
      attachment: null,
      timer: undefined,
    };
    this.table.add(volume);
    const delayMs = Number(spec.metadata['ostack_delay'] ?? 0) * 1000;
    this.after(volume, delayMs, () => {
      this.set(volume, spec.metadata['ostack_fail'] === 'create' ? 'error' : 'available');
    });
    return volume;
  }

  /** Attaches a volume to a server in any state. */
  attach(volume: VolumeRecord, serverId: string, device: string): void {
    volume.timer?.cancel();
    volume.attachment = { serverId, id: newUuid(this.state.random), at: this.state.clock.now(), device };
    this.set(volume, 'in-use');
  }

  detach(volume: VolumeRecord): void {
    volume.attachment = null;
    this.set(volume, 'available');
  }

  /** Starts to delete a volume. */
  delete(volume: VolumeRecord): void {
    volume.attachment = null;
    this.set(volume, 'deleting');
    this.after(volume, 0, () => {
      if (volume.metadata['ostack_fail'] === 'delete') this.set(volume, 'error_deleting');
      else this.table.remove(volume.id, this.state.clock.now());
    });
  }

  set(volume: VolumeRecord, status: VolumeStatus): void {
    volume.status = status;
    volume.updatedAt = this.state.clock.now();
  }

  used(projectId: string): { readonly volumes: number; readonly gigabytes: number } {
    let [volumes, gigabytes] = [0, 0];
    for (const { project, sizeGb } of this.table.all()) {
      if (project !== projectId) continue;
      volumes += 1;
      gigabytes += sizeGb;
    }
    return { volumes, gigabytes };
  }

  /** Stops all tasks in progress. */
  close(): void {
    for (const volume of this.table.all()) volume.timer?.cancel();
  }

  private after(volume: VolumeRecord, delayMs: number, work: () => void): void {
    volume.timer?.cancel();
    volume.timer = this.state.clock.schedule(delayMs, work);
  }
}
