/** The fault plan of a simulated cloud: which calls fail, and how. */

import type { RandomSource } from '@nodepool/core';
import { isWithin, type CloudCall } from './calls.js';

/** An error status instead of the answer; `E` are the vendor's details of the error. */
export type StatusFault<E extends object = object> = {
  readonly kind: 'status';
  readonly status: number;
  /** Seconds or a date for the header Retry-After. Default: no such header. */
  readonly retryAfter?: number | string;
  /** Before or after the effect of the call. Default `before`. */
  readonly when?: 'before' | 'after';
} & E;

/** What can happen to any call of any cloud. `before` and `after` refer to its effect. */
export type CallFault<E extends object = object> =
  | StatusFault<E>
  /** The connection ends without an answer, or (`during`) in the middle of it. */
  | { readonly kind: 'cut'; readonly when: 'before' | 'after' | 'during' }
  /** No answer until the caller gives up. */
  | { readonly kind: 'hang'; readonly when: 'before' | 'after' }
  /** Added to the latency of the cloud, milliseconds. */
  | { readonly kind: 'latency'; readonly ms: number };

/** A fault that only the handlers of one cloud know, e.g. lists that lag. */
export interface VendorFault {
  readonly kind: string;
}

export interface FaultRule<F extends VendorFault, C extends CloudCall = CloudCall> {
  /** An operation, a group of operations, `*`, or a function of the call. */
  readonly on: string | ((call: C) => boolean);
  readonly fault: F;
  /** Matching calls that pass before the first fault. Default 0. */
  readonly after?: number;
  /** Calls that the fault hits. Default 1; `Infinity` hits all. */
  readonly times?: number;
  /** Probability with which each of them is hit. Default 1. */
  readonly probability?: number;
}

/** A rule that was added. */
export interface ActiveFault {
  /** Calls that it has hit. */
  readonly hits: number;
  /** Ends the rule. Idempotent. */
  remove(): void;
}

interface RuleState<F extends VendorFault, C extends CloudCall> extends ActiveFault {
  readonly rule: FaultRule<F, C>;
  hits: number;
  seen: number;
}

export class FaultPlan<F extends VendorFault = CallFault, C extends CloudCall = CloudCall> {
  private rules: RuleState<F, C>[] = [];

  constructor(private readonly random: RandomSource) {}

  /** Adds a rule, which applies from the next call on. */
  add(rule: FaultRule<F, C>): ActiveFault {
    const state: RuleState<F, C> = {
      rule,
      hits: 0,
      seen: 0,
      remove: () => {
        this.rules = this.rules.filter((other) => other !== state);
      },
    };
    this.rules.push(state);
    return state;
  }

  clear(): void {
    this.rules = [];
  }

  /** Returns the faults that hit this call, and counts it. */
  strike(call: C): readonly F[] {
    return this.rules.filter((state) => this.hits(state, call)).map(({ rule }) => rule.fault);
  }

  private hits(state: RuleState<F, C>, call: C): boolean {
    const { on, after = 0, times = 1, probability = 1 } = state.rule;
    const matches = typeof on === 'function' ? on(call) : on === '*' || isWithin(call.operation, on);
    if (!matches || state.hits >= times) return false;
    state.seen += 1;
    if (state.seen <= after) return false;
    if (probability < 1 && this.random.next() >= probability) return false;
    state.hits += 1;
    return true;
  }
}
