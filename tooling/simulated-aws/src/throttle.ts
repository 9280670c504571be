/** Token buckets of EC2's calls: https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html. */

import type { Clock } from '@nodepool/core';

/** Capacity and refill per second. */
type Rate = readonly [capacity: number, perSecond: number];

const NON_MUTATING: Rate = [100, 20];
const UNFILTERED: Rate = [50, 10];
const MUTATING: Rate = [50, 5];

/** Calls with a smaller bucket unless they have a filter or paging. */
const EXPENSIVE_READS: ReadonlySet<string> = new Set([
  ...['DescribeInstances', 'DescribeInstanceStatus', 'DescribeNetworkInterfaces', 'DescribeSecurityGroups'],
  ...['DescribeSnapshots', 'DescribeSpotInstanceRequests', 'DescribeVolumes'],
]);

/** Calls with rates of their own. */
const RATES: Readonly<Record<string, Rate>> = {
  CopyImage: [100, 1],
  CreateLaunchTemplateVersion: [100, 5],
  CreateNetworkInterface: [100, 5],
  CreateSnapshot: [100, 5],
  CreateTags: [100, 10],
  CreateVolume: [100, 5],
  DeleteNetworkInterface: [100, 5],
  DeleteSnapshot: [100, 5],
  DeleteTags: [100, 10],
  DeleteVolume: [100, 5],
  DeregisterImage: [100, 5],
  ModifyImageAttribute: [100, 5],
  RunInstances: [5, 2],
  StartInstances: [5, 2],
};

/** Tokens for the instances that a call is about. CreateFleet launches at the same rate as RunInstances. */
const RESOURCE_RATES: Readonly<Record<string, Rate>> = {
  RunInstances: [1000, 2],
  TerminateInstances: [1000, 20],
  StartInstances: [1000, 2],
  StopInstances: [1000, 20],
};

export interface ThrottledInput {
  readonly Filters?: readonly unknown[];
  readonly MaxResults?: number;
  readonly NextToken?: string;
}

export class Throttle {
  private readonly buckets = new Map<string, { tokens: number; at: number }>();

  constructor(private readonly clock: Clock) {}

  /** Takes a token for a call. Returns false if there is none. */
  takeCall(operation: string, { Filters: filters = [], MaxResults, NextToken }: ThrottledInput): boolean {
    const isFiltered = filters.length > 0 || MaxResults !== undefined || NextToken !== undefined;
    if (EXPENSIVE_READS.has(operation) && !isFiltered) return this.take(`${operation} unfiltered`, UNFILTERED, 1);
    const isRead = /^(?:Describe|Get|List|Search)/.test(operation);
    return this.take(operation, RATES[operation] ?? (isRead ? NON_MUTATING : MUTATING), 1);
  }

  /** Takes a token for each instance. Returns false, without taking any, if there are fewer. */
  takeInstances(operation: string, count: number): boolean {
    const rate = RESOURCE_RATES[operation];
    return rate === undefined || this.take(`${operation} resources`, rate, count);
  }

  private take(key: string, [capacity, perSecond]: Rate, count: number): boolean {
    const now = this.clock.monotonic();
    const bucket = this.buckets.get(key) ?? { tokens: capacity, at: now };
    bucket.tokens = Math.min(capacity, bucket.tokens + ((now - bucket.at) / 1000) * perSecond);
    bucket.at = now;
    this.buckets.set(key, bucket);
    if (bucket.tokens < count) return false;
    bucket.tokens -= count;
    return true;
  }
}
