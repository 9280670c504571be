/** The offer of AWS: capacity by type, market and zone, offerings and spot prices. */

import type { Clock } from '@nodepool/core';
import type { CapacityLimit, CapacityPeriod, InstanceMatch, Market } from './api.js';
import { INSTANCE_TYPES } from './ec2/instance-types.js';
import { isActive, type Instance } from './ec2/records.js';

/** Spot price as a part of the on-demand price. */
const SPOT_PART = 0.3;

interface Limit {
  readonly match: InstanceMatch;
  readonly count: number;
  readonly period: CapacityPeriod;
}

export class CapacityBook {
  private limits: Limit[] = [];
  private readonly withdrawn = new Set<string>();
  private readonly prices = new Map<string, number>();

  constructor(private readonly clock: Clock) {}

  limit(match: InstanceMatch, count: number, period: CapacityPeriod = {}): CapacityLimit {
    const limit = { match, count, period };
    this.limits.push(limit);
    return {
      remove: () => {
        this.limits = this.limits.filter((other) => other !== limit);
      },
    };
  }

  /** Returns how many more instances there is capacity for. */
  available(instanceType: string, market: Market, zone: string, instances: readonly Instance[]): number {
    const now = this.clock.now();
    const rooms = this.limits
      .filter(({ period: { from = -Infinity, until = Infinity } }) => from <= now && now < until)
      .filter(({ match }) => fits(match, instanceType, market, zone))
      .map(({ match, count }) => {
        const used = instances.filter(
          (instance) => isActive(instance) && fits(match, instance.type.name, instance.market, instance.zone),
        );
        return Math.max(0, count - used.length);
      });
    return Math.min(Infinity, ...rooms);
  }

  withdraw(instanceType: string, zone: string): void {
    this.withdrawn.add(`${instanceType} ${zone}`);
  }

  /** Returns true if a zone has the type. Old and rare types are not in every zone, as with AWS. */
  isOffered(instanceType: string, zone: string): boolean {
    if (this.withdrawn.has(`${instanceType} ${zone}`)) return false;
    const isRare = /^(?:u7in|u7i|u-|hpc|mac|trn|dl|p4d)/.test(instanceType);
    const isLate = zone === 'us-east-1e' && !/^(?:t2|t3|m3|c5|m5|r5)\./.test(instanceType);
    return INSTANCE_TYPES.has(instanceType) && !isLate && !(isRare && !/[ab]$/.test(zone));
  }

  setSpotPrice(instanceType: string, zone: string, price: number): void {
    this.prices.set(`${instanceType} ${zone}`, price);
  }

  spotPrice(instanceType: string, zone: string): number {
    const onDemand = INSTANCE_TYPES.get(instanceType)?.price ?? 0;
    return this.prices.get(`${instanceType} ${zone}`) ?? onDemand * SPOT_PART;
  }
}

function fits(match: InstanceMatch, instanceType: string, market: Market, zone: string): boolean {
  return (
    (match.instanceType ?? instanceType) === instanceType &&
    (match.market ?? market) === market &&
    (match.zone ?? zone) === zone
  );
}
