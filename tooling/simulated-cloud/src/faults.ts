/** The fault plan of a simulated cloud, which selects failing calls and their failures. */

import type { RandomSource } from '@nodepool/core';
import { isWithin, type CloudCall } from './calls.js';

/** An error status instead of the answer; `E` contains the vendor's error details. */
export type StatusFault<E extends object = object> = {
  readonly kind: 'status';
  readonly status: number;
  /** `Retry-After` in seconds or as a date. Default: no such header. */
  readonly retryAfter?: number | string;
  /** Before or after the effect of the call. Default `before`. */
  readonly when?: 'before' | 'after';
} & E;

/** Faults that any call of any cloud supports. `before` and `after` refer to its effect. */
export type CallFault<E extends object = object> =
  | StatusFault<E>
  /**
   * A proxy in front of the cloud answers with a page of its own, or with the given JSON; the call does not reach the
   * cloud. With `echo`, the page contains the request with its headers.
   */
  | { readonly kind: 'proxy'; readonly status: number; readonly json?: object; readonly echo?: boolean }
  /** A load balancer answers with a redirect; the call does not reach the cloud. */
  | { readonly kind: 'redirect'; readonly status: number; readonly to: string | ((url: URL) => string) }
  /** The answer has another content type. */
  | { readonly kind: 'content-type'; readonly type: string }
  /** The answer never ends, as that of a broken or hostile server. */
  | { readonly kind: 'endless' }
  /** The connection closes without an answer, or (`during`) in the middle of it. */
  | { readonly kind: 'cut'; readonly when: 'before' | 'after' | 'during' }
  /** The call is never answered. */
  | { readonly kind: 'hang'; readonly when: 'before' | 'after' }
  /** Additional latency (ms). */
  | { readonly kind: 'latency'; readonly ms: number };

/** A fault that the handlers of one cloud implement, e.g. lagging lists. */
export interface VendorFault {
  readonly kind: string;
}

export interface FaultRule<F extends VendorFault, C extends CloudCall = CloudCall> {
  /** An operation, a group of operations, `*`, or a function of the call. */
  readonly on: string | ((call: C) => boolean);
  readonly fault: F;
  /** Number of matching calls before the first fault. Default 0. */
  readonly after?: number;
  /** Number of calls that fail. Default 1; `Infinity` means all. */
  readonly times?: number;
  /** Probability for each of them. Default 1. */
  readonly probability?: number;
}

/** An added rule. */
export interface ActiveFault {
  /** Number of calls that have failed. */
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

  /** Adds a rule that applies from the next call on. */
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

  /** Counts the call and returns its faults. */
  faultsOf(call: C): readonly F[] {
    return this.rules.filter((state) => this.applies(state, call)).map(({ rule }) => rule.fault);
  }

  private applies(state: RuleState<F, C>, call: C): boolean {
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
