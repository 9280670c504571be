/**
 * The instances of the example cloud. The state of an instance is computed from the time, so that many instances need
 * no timers; only ssh servers are started and stopped.
 */

import type { Clock, RandomSource } from '@nodepool/core';
import { AddressPool } from './addresses.js';
import type { ApiGateway } from './api-gateway.js';
import { InstanceRecord, type Plan } from './instance-record.js';
import type { CloudSettings } from './settings.js';
import { CloudError, type CloudInstance, type InstanceSpec, type Page } from './types.js';

/** Resources in use that count against the quota. */
export interface Usage {
  readonly instances: number;
  readonly cores: number;
  readonly ram: number;
}

export class InstanceStore {
  /** Listed instances, in the order of their creation. */
  private readonly records = new Set<InstanceRecord>();
  /** The newest instance of each id. */
  private readonly byId = new Map<string, InstanceRecord>();
  /** Instances that are being deleted, or are deleted and still listed. */
  private readonly leaving = new Set<InstanceRecord>();
  private readonly addresses = new AddressPool();
  private readonly idPrefix: string;
  private made = 0;
  private readonly used = { instances: 0, cores: 0, ram: 0 };

  constructor(
    private readonly clock: Clock,
    random: RandomSource,
    private readonly gateway: ApiGateway,
    private settings: CloudSettings,
  ) {
    // Without `reusesIds`, ids are never reused, not even after a restart of the cloud.
    this.idPrefix = `i-${random.uuidHex().slice(0, 8)}`;
  }

  configure(settings: CloudSettings): void {
    this.settings = settings;
  }

  usage(): Usage {
    this.sweep();
    return { ...this.used };
  }

  /** Creates an instance. `imageReady` throws if the image cannot be used. */
  create(spec: InstanceSpec, imageReady: (image: string) => void): CloudInstance {
    this.sweep();
    const zone = this.zoneOf(spec);
    const { cores, ram } = this.sizeOf(spec);
    imageReady(spec.image);
    this.checkQuota(cores, ram);
    if (this.gateway.happens('capacity-errors'))
      throw new CloudError('no-capacity', `zone ${zone} has no capacity at the moment`);
    const address = this.addresses.take();
    if (address === undefined) throw new CloudError('no-capacity', 'the cloud has no addresses left');

    this.made += 1;
    const { ssh, authorizedKeys, reusesIds } = this.settings;
    // The numbers of addresses are used again at once.
    const id = reusesIds ? `vm-${address}` : `${this.idPrefix}-${String(this.made).padStart(6, '0')}`;
    const place = { zone, cores, ram, address, ssh, authorizedKeys };
    const record = new InstanceRecord(id, this.made, spec, place, this.plan());
    this.records.add(record);
    this.byId.set(id, record);
    this.used.instances += 1;
    this.used.cores += cores;
    this.used.ram += ram;
    record.boot(this.clock);
    return record.describe(this.clock.monotonic());
  }

  /** Starts the deletion and returns the instance in its new state. Throws `not-found` if there is none. */
  delete(id: string): CloudInstance {
    this.sweep();
    const now = this.clock.monotonic();
    const record = this.present(id, now);
    if (record.goneAt === Infinity) this.startLeaving(record, now, this.gateway.draw(this.settings.deleteTimeMs));
    const description = record.describe(now, record.goneAt <= now ? 'deleted' : 'deleting');
    this.sweep();
    return description;
  }

  /** Deletes an instance immediately, as a host failure does. Returns false if there is no such instance. */
  destroy(id: string): boolean {
    this.sweep();
    const now = this.clock.monotonic();
    const record = this.byId.get(id);
    if (record === undefined || record.goneAt <= now) return false;
    this.startLeaving(record, now, 0);
    this.sweep();
    return true;
  }

  /** Marks an instance as failed, as a disk failure does. Returns false if there is no such instance. */
  break(id: string): boolean {
    this.sweep();
    const record = this.byId.get(id);
    if (record === undefined || record.goneAt <= this.clock.monotonic()) return false;
    record.fail('its disk is broken');
    return true;
  }

  /** Returns one page of the current listing. */
  list(marker: string | null, limit: number): Page<CloudInstance> {
    this.sweep();
    const now = this.clock.monotonic();
    const after = marker === null ? 0 : Number(marker);
    if (!Number.isInteger(after)) throw new CloudError('invalid', `marker ${marker ?? ''} is not from a listing`);
    const items: CloudInstance[] = [];
    let last = after;
    for (const record of this.records) {
      if (record.sequence <= after || !record.listed(now)) continue;
      if (items.length === limit) return { items, next: String(last) };
      items.push(record.describe(now));
      last = record.sequence;
    }
    return { items, next: null };
  }

  /** Returns all existing instances, without the lag of listings. */
  existing(): CloudInstance[] {
    this.sweep();
    const now = this.clock.monotonic();
    const present = [...this.records].filter((record) => record.goneAt > now);
    return present.map((record) => record.describe(now));
  }

  console(id: string): string {
    this.sweep();
    const now = this.clock.monotonic();
    return this.present(id, now).console(now);
  }

  close(): void {
    for (const record of this.records) record.shutDown();
  }

  private present(id: string, now: number): InstanceRecord {
    const record = this.byId.get(id);
    if (record === undefined || record.goneAt <= now) throw new CloudError('not-found', `there is no instance ${id}`);
    return record;
  }

  private zoneOf(spec: InstanceSpec): string {
    const { zones } = this.settings;
    const zone = spec.zone ?? zones[0];
    if (zone !== undefined && zones.includes(zone)) return zone;
    throw new CloudError('invalid', `there is no zone ${spec.zone ?? ''}; zones: ${zones.join(', ')}`);
  }

  private sizeOf(spec: InstanceSpec): { cores: number; ram: number } {
    if (spec.size === null) return { cores: spec.cores ?? 1, ram: spec.ram ?? 1024 };
    const size = this.settings.sizes.find(({ name }) => name === spec.size);
    if (size !== undefined) return size;
    const names = this.settings.sizes.map(({ name }) => name).join(', ');
    throw new CloudError('invalid', `there is no size ${spec.size}; sizes: ${names}`);
  }

  private checkQuota(cores: number, ram: number): void {
    const { quota } = this.settings;
    this.checkLimit('instances', this.used.instances + 1, quota.instances);
    this.checkLimit('cores', this.used.cores + cores, quota.cores);
    this.checkLimit('ram', this.used.ram + ram, quota.ram);
  }

  private checkLimit(resource: string, wanted: number, limit: number): void {
    if (wanted > limit) throw new CloudError('quota', `quota exceeded: ${wanted} ${resource}, of ${limit}`);
  }

  private plan(): Plan {
    const now = this.clock.monotonic();
    const bootedAt = now + this.gateway.draw(this.settings.bootTimeMs);
    const stuck = this.gateway.happens('stuck-instances');
    const fails = !stuck && this.gateway.happens('failed-instances');
    return {
      createdAt: now,
      readyAt: stuck || fails ? Infinity : bootedAt,
      failsAt: fails ? bootedAt : Infinity,
      listedFrom: now + this.gateway.draw(this.settings.listLagMs),
    };
  }

  private startLeaving(record: InstanceRecord, now: number, takesMs: number): void {
    record.goneAt = now + takesMs;
    record.listedUntil = record.goneAt + this.gateway.draw(this.settings.listLagMs);
    record.shutDown();
    this.leaving.add(record);
  }

  /** Releases the resources of deleted instances. */
  private sweep(): void {
    if (this.leaving.size === 0) return;
    const now = this.clock.monotonic();
    for (const record of this.leaving) {
      if (record.goneAt <= now && !record.freed) this.free(record);
      if (record.listedUntil <= now) {
        this.leaving.delete(record);
        this.records.delete(record);
        if (this.byId.get(record.id) === record) this.byId.delete(record.id);
      }
    }
  }

  private free(record: InstanceRecord): void {
    record.freed = true;
    this.used.instances -= 1;
    this.used.cores -= record.place.cores;
    this.used.ram -= record.place.ram;
    this.addresses.giveBack(record.place.address);
  }
}
