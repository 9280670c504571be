/** The fault plan: which calls go wrong, and how. */

import type { RandomSource } from '@nodepool/core';

/** What happens to a call. `before`, `after`: its effect. */
export type CallFault =
  | {
      readonly kind: 'status';
      readonly status: number;
      /** Default: `backendError`. */
      readonly reason?: string;
      readonly message?: string;
      /** Seconds, for the header Retry-After. */
      readonly retryAfter?: number;
      /** Default `before`. */
      readonly when?: 'before' | 'after';
    }
  /** The connection ends without an answer. */
  | { readonly kind: 'cut'; readonly when: 'before' | 'after' }
  /** No answer until the caller gives up. */
  | { readonly kind: 'hang'; readonly when: 'before' | 'after' }
  /** The call is accepted, and its operation ends with this error, without effect. */
  | { readonly kind: 'operation-error'; readonly code: string; readonly message: string };

/** A call, as the cloud saw it. */
export interface CloudCall {
  /** e.g. `instances.insert`; `unknown` where nothing answers. */
  readonly operation: string;
  readonly method: string;
  readonly path: string;
}

export interface FaultRule {
  /** An operation, `*`, or whatever the function says. */
  readonly on: string | ((call: CloudCall) => boolean);
  readonly fault: CallFault;
  /** So many matching calls get through first. Default 0. */
  readonly after?: number;
  /** So many are hit then. Default 1; `Infinity`: all. */
  readonly times?: number;
  /** With which each of them is hit. Default 1. */
  readonly probability?: number;
}

interface RuleState {
  readonly rule: FaultRule;
  seen: number;
  hits: number;
}

export class FaultPlan {
  private rules: RuleState[] = [];

  constructor(private readonly random: RandomSource) {}

  /** Adds a rule; it strikes from the next call on. */
  add(rule: FaultRule): void {
    this.rules.push({ rule, seen: 0, hits: 0 });
  }

  clear(): void {
    this.rules = [];
  }

  /** What happens to this call: the first fault that strikes. */
  strike(call: CloudCall): CallFault | undefined {
    for (const state of this.rules) if (this.hits(state, call)) return state.rule.fault;
    return undefined;
  }

  private hits(state: RuleState, call: CloudCall): boolean {
    const { on, after = 0, times = 1, probability = 1 } = state.rule;
    const matches = typeof on === 'function' ? on(call) : on === '*' || on === call.operation;
    if (!matches || state.hits >= times) return false;
    state.seen += 1;
    if (state.seen <= after) return false;
    if (probability < 1 && this.random.next() >= probability) return false;
    state.hits += 1;
    return true;
  }
}
