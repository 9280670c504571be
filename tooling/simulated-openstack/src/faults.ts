/** The fault plan: which calls go wrong, and what becomes of servers. */

import type { RandomSource } from '@nodepool/core';
import type { CloudCall } from './calls.js';
import type { Lag } from './table.js';

/** What happens to a call. `before`, `after`: its effect. */
export type CallFault =
  | {
      readonly kind: 'status';
      readonly status: number;
      /** Seconds, or a date, for the header Retry-After. Default: no such header. */
      readonly retryAfter?: number | string;
      /** Default `before`. */
      readonly when?: 'before' | 'after';
      /** Instead of the service's own error body. */
      readonly body?: string;
    }
  /** The connection ends without an answer, or in the middle of one. */
  | { readonly kind: 'cut'; readonly when: 'before' | 'after' | 'during' }
  /** No answer until the caller gives up. */
  | { readonly kind: 'hang'; readonly when: 'before' | 'after' }
  | { readonly kind: 'latency'; readonly ms: number }
  | ({ readonly kind: 'lag' } & Partial<Lag>)
  /** A listing that ends after so many entries, without saying that there is more. */
  | { readonly kind: 'truncate'; readonly to: number };

export interface FaultRule {
  /** An operation, a service, `*`, or whatever the function says. */
  readonly on: string | ((call: CloudCall) => boolean);
  readonly fault: CallFault;
  /** So many matching calls get through first. Default 0. */
  readonly after?: number;
  /** So many are hit then. Default 1; `Infinity`: all. */
  readonly times?: number;
  /** With which each of them is hit. Default 1. */
  readonly probability?: number;
}

/** A rule that was added. */
export interface ActiveFault {
  /** How often it has struck. */
  readonly hits: number;
  /** It strikes no more. Idempotent. */
  remove(): void;
}

/** How the boot of a server goes. */
export type BootFate =
  /** It goes to ERROR; `{id}` in the message is its id. */
  | { readonly boot: 'error'; readonly message: string; readonly code?: number }
  /** BUILD for ever. */
  | { readonly boot: 'never' }
  | { readonly boot: 'ms'; readonly ms: number };

/** How the deletion of a server goes. */
export type DeletionFate =
  /** The first deletions end in ERROR (`error`) or are refused with 409 (`conflict`). Default `times` 1. */
  | { readonly delete: 'error' | 'conflict'; readonly times?: number }
  /** 204, and it stays. */
  | { readonly delete: 'never' };

/** What becomes of a server. */
export type ServerFate = BootFate | DeletionFate;

export interface FateRule {
  readonly fate: ServerFate;
  /** For so many of the servers that are created from now on. Default 1. */
  readonly times?: number;
  readonly where?: (server: ServerFacts) => boolean;
}

/** What a fate can depend on. */
export interface ServerFacts {
  readonly id: string;
  readonly name: string;
  readonly project: string;
  readonly metadata: Readonly<Record<string, string>>;
}

/** What the plan can do to the cloud itself. */
export interface CloudHands {
  revokeTokens(): void;
  breakServer(id: string, message: string): boolean;
  vanish(id: string): boolean;
}

interface RuleState extends ActiveFault {
  readonly rule: FaultRule;
  hits: number;
  seen: number;
}

interface FateState {
  readonly rule: FateRule;
  left: number;
}

export class FaultPlan {
  private rules: RuleState[] = [];
  private fates: FateState[] = [];

  constructor(
    private readonly random: RandomSource,
    private readonly hands: CloudHands,
  ) {}

  /** Adds a rule; it strikes from the next call on. */
  add(rule: FaultRule): ActiveFault {
    const state: RuleState = {
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

  /** Decides over servers that are created from now on. */
  nextServers(rule: FateRule): void {
    this.fates.push({ rule, left: rule.times ?? 1 });
  }

  /** No rules, no fates for future servers any more. What is on its way goes on. */
  clear(): void {
    this.rules = [];
    this.fates = [];
  }

  /** Every token that was given out is refused from now on. */
  revokeTokens(): void {
    this.hands.revokeTokens();
  }

  /** Takes a server to ERROR, as a host does that breaks down. False: there is none. */
  breakServer(id: string, message: string): boolean {
    return this.hands.breakServer(id, message);
  }

  /** Takes a server away with its ports, as an administrator does. False: there is none. */
  vanish(id: string): boolean {
    return this.hands.vanish(id);
  }

  /** What happens to this call. */
  strike(call: CloudCall): readonly CallFault[] {
    if (this.rules.length === 0) return [];
    return this.rules.filter((state) => this.hits(state, call)).map(({ rule }) => rule.fault);
  }

  /** What is to become of a new server. */
  fatesOf(server: ServerFacts): readonly ServerFate[] {
    const decided = this.fates.filter(({ rule }) => rule.where?.(server) ?? true);
    for (const state of decided) state.left -= 1;
    this.fates = this.fates.filter(({ left }) => left > 0);
    return decided.map(({ rule }) => rule.fate);
  }

  private hits(state: RuleState, call: CloudCall): boolean {
    const { rule } = state;
    if (state.hits >= (rule.times ?? 1) || !matches(rule.on, call)) return false;
    state.seen += 1;
    if (state.seen <= (rule.after ?? 0)) return false;
    if (rule.probability !== undefined && this.random.next() >= rule.probability) return false;
    state.hits += 1;
    return true;
  }
}

function matches(on: FaultRule['on'], call: CloudCall): boolean {
  if (typeof on === 'function') return on(call);
  return on === '*' || on === call.service || on === call.operation;
}
