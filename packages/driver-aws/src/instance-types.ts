/** Caches the sizes of instance types. They never expire, because they never change. */

import { ConfigurationError, type Call } from '@nodepool/core';
import type { Ec2 } from './client/ec2.js';

/** Interval between queries for types of listed instances that EC2 does not describe (ms). */
const MISSING_INTERVAL_MS = 600_000;

export interface TypeSize {
  readonly cores: number;
  /** The unit of quotas. */
  readonly vcpus: number;
  /** MiB. */
  readonly ram: number;
}

export class InstanceTypes {
  private readonly sizes = new Map<string, TypeSize>();
  private readonly nextQueries = new Map<string, number>();
  /** By type. */
  private readonly underway = new Map<string, Promise<void>>();

  constructor(
    private readonly ec2: Ec2,
    private readonly now: () => number,
    private readonly makeCall: () => Call,
  ) {}

  /** Returns the size; undefined if it is unknown or not cached yet. */
  known(type: string): TypeSize | undefined {
    return this.sizes.get(type);
  }

  /** Rejects with `ConfigurationError` if the region does not have the type. */
  async read(type: string, key: string): Promise<TypeSize> {
    const known = this.sizes.get(type);
    if (known !== undefined) return known;
    await this.load([type]);
    const size = this.sizes.get(type);
    if (size === undefined) throw new ConfigurationError(`the region has no instance type ${type}; check ${key}`);
    return size;
  }

  /** Reads the sizes of listed types that are not cached. A failure leaves them unknown for a while. */
  async learn(types: Iterable<string>, { log }: Call): Promise<void> {
    const now = this.now();
    const missing = [...new Set(types)].filter(
      (type) => !this.sizes.has(type) && now >= (this.nextQueries.get(type) ?? -Infinity),
    );
    if (missing.length === 0) return;
    try {
      await this.load(missing);
    } catch (error) {
      log.warn('Could not read the types of listed instances; their size is unknown', { error, types: missing });
    }
    for (const type of missing) if (!this.sizes.has(type)) this.nextQueries.set(type, now + MISSING_INTERVAL_MS);
  }

  /** Shares queries in progress. */
  private async load(types: readonly string[]): Promise<void> {
    const unasked = types.filter((type) => !this.underway.has(type));
    if (unasked.length > 0) {
      const query = this.query(unasked).finally(() => {
        for (const type of unasked) this.underway.delete(type);
      });
      for (const type of unasked) this.underway.set(type, query);
    }
    await Promise.all(types.map((type) => this.underway.get(type) ?? Promise.resolve()));
  }

  private async query(types: readonly string[]): Promise<void> {
    for (const { InstanceType, VCpuInfo, MemoryInfo } of await this.ec2.describeTypes(types, this.makeCall())) {
      const vcpus = VCpuInfo?.DefaultVCpus;
      if (InstanceType === undefined || vcpus === undefined) continue;
      const { DefaultCores: cores = vcpus } = VCpuInfo ?? {};
      this.sizes.set(InstanceType, { cores, vcpus, ram: MemoryInfo?.SizeInMiB ?? 0 });
    }
  }
}
