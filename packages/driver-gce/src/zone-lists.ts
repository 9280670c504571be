/**
 * Lists the instances of a region by zone, so that an unreachable zone does not delay the others; its last known
 * instances remain in the list. Zones that no pool uses are listed less often, for the region's limits.
 */

import type { Call, Clock, JsonObject } from '@nodepool/core';
import { nameIn } from './client/answers.js';
import type { Compute } from './client/compute.js';
import type { GceProvider } from './config.js';

/** Interval between listings of a zone that no pool uses (ms). */
const UNUSED_ZONE_INTERVAL_MS = 60_000;

/** Number of consecutive failed listings after which a zone counts as unreachable. */
const FAILURES_UNTIL_UNREACHABLE = 3;

export class ZoneLists {
  /** Last known instances, by zone. */
  private readonly known = new Map<string, readonly JsonObject[]>();
  /** Monotonic time (ms) of the next listing of a zone that no pool uses. */
  private readonly nextReads = new Map<string, number>();
  /** Number of failed listings since the last successful one, by zone. */
  private readonly failures = new Map<string, number>();
  private readonly zones: readonly string[];

  constructor(
    private readonly compute: Compute,
    private readonly clock: Clock,
    private readonly used: ReadonlySet<string>,
    ofRegion: readonly string[],
  ) {
    this.zones = [...new Set([...used, ...ofRegion])];
  }

  /**
   * Resolves with the instances of all zones. Rejects if a failing zone is not yet known to be unreachable, or if a
   * pool's zone has never been listed, because its instances would be missing. Also rejects if none of the pools' zones
   * can be listed.
   */
  async list(call: Call): Promise<readonly JsonObject[]> {
    const results = await Promise.allSettled(this.zones.map((zone) => this.refresh(zone, call)));
    const answered = this.zones.some((zone, index) => this.used.has(zone) && results[index]?.status === 'fulfilled');
    for (const [index, zone] of this.zones.entries()) {
      const result = results[index];
      if (result?.status !== 'rejected') continue;
      if (!answered || !this.isUnreachable(zone) || this.isMissing(zone)) throw result.reason;
    }
    return this.knownInstances();
  }

  /** Resolves with the instances of the last lists. Lists only if a zone, except unused unreachable ones, never was. */
  async latest(call: Call): Promise<readonly JsonObject[]> {
    if (this.zones.some((zone) => this.isMissing(zone))) return this.list(call);
    return this.knownInstances();
  }

  private async refresh(zone: string, call: Call): Promise<void> {
    const now = this.clock.monotonic();
    if (now < (this.nextReads.get(zone) ?? -Infinity)) return;
    try {
      this.known.set(zone, await this.compute.listInstances(zone, call));
      if (this.isUnreachable(zone)) call.log.info('A zone answers again', { zone });
      this.failures.delete(zone);
      this.postpone(zone, now);
    } catch (error) {
      if (!call.signal.aborted) this.countFailure(zone, error, call);
      if (this.isUnreachable(zone)) this.postpone(zone, now);
      throw error;
    }
  }

  private postpone(zone: string, now: number): void {
    if (!this.used.has(zone)) this.nextReads.set(zone, now + UNUSED_ZONE_INTERVAL_MS);
  }

  private isUnreachable(zone: string): boolean {
    return (this.failures.get(zone) ?? 0) >= FAILURES_UNTIL_UNREACHABLE;
  }

  /** Returns true if the instances of a zone are unknown, and must be known. */
  private isMissing(zone: string): boolean {
    return !this.known.has(zone) && (this.used.has(zone) || !this.isUnreachable(zone));
  }

  private knownInstances(): readonly JsonObject[] {
    return this.zones.flatMap((zone) => this.known.get(zone) ?? []);
  }

  private countFailure(zone: string, error: unknown, { log }: Call): void {
    const failures = (this.failures.get(zone) ?? 0) + 1;
    this.failures.set(zone, failures);
    if (failures !== FAILURES_UNTIL_UNREACHABLE) return;
    log.warn('A zone does not answer; its last known instances, if any, are used', { zone, error });
  }
}

/** Returns the provider's zone and the zones in which its pools create instances. */
export function usedZones({ zone, pools }: GceProvider): ReadonlySet<string> {
  return new Set([zone, ...[...pools.values()].flatMap(({ availabilityZones }) => availabilityZones)]);
}

export function zonesIn(region: JsonObject): readonly string[] {
  const urls = region['zones'];
  return Array.isArray(urls) ? urls.flatMap((url) => (typeof url === 'string' ? [nameIn(url)] : [])) : [];
}
