/** Faults of the simulated OpenStack: of calls, and of servers. */

import type { RandomSource } from '@nodepool/core';
import {
  FaultPlan as CallFaultPlan,
  type CallFault as AnyCallFault,
  type CloudCall as AnyCloudCall,
  type FaultRule as AnyFaultRule,
} from '@nodepool/simulated-cloud';
import type { ServiceName } from './services.js';
import type { Lag } from './table.js';

/** One call, as the cloud received it; its path is below the service. */
export interface CloudCall extends AnyCloudCall {
  /** Undefined if the address belongs to no service. */
  readonly service: ServiceName | undefined;
  /** Name of the caller's project; undefined before a token says it. */
  readonly project: string | undefined;
}

export type CallFault =
  /** `body` replaces the service's own error. */
  | AnyCallFault<{ readonly body?: string }>
  | ({ readonly kind: 'lag' } & Partial<Lag>)
  /** A listing that ends after `to` entries without a link to more. */
  | { readonly kind: 'truncate'; readonly to: number };

export type FaultRule = AnyFaultRule<CallFault, CloudCall>;

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

/** Boot or deletion of a server. */
export type ServerFate = BootFate | DeletionFate;

export interface FateRule {
  readonly fate: ServerFate;
  /** For so many of the servers that are created from now on. Default 1. */
  readonly times?: number;
  readonly where?: (server: ServerFacts) => boolean;
}

/** Facts that a fate can depend on. */
export interface ServerFacts {
  readonly id: string;
  readonly name: string;
  readonly project: string;
  readonly metadata: Readonly<Record<string, string>>;
}

/** Effects of the plan on the cloud itself. */
export interface CloudHands {
  revokeTokens(): void;
  breakServer(id: string, message: string): boolean;
  vanish(id: string): boolean;
}

interface FateState {
  readonly rule: FateRule;
  left: number;
}

export class FaultPlan extends CallFaultPlan<CallFault, CloudCall> {
  private fates: FateState[] = [];

  constructor(
    random: RandomSource,
    private readonly hands: CloudHands,
  ) {
    super(random);
  }

  /** Decides over servers that are created from now on. */
  nextServers(rule: FateRule): void {
    this.fates.push({ rule, left: rule.times ?? 1 });
  }

  /** Ends all rules, and the fates of future servers. Present servers keep theirs. */
  override clear(): void {
    super.clear();
    this.fates = [];
  }

  /** Refuses all tokens that were given out. */
  revokeTokens(): void {
    this.hands.revokeTokens();
  }

  /** Takes a server to ERROR, as a host does that breaks down. Returns false if there is none. */
  breakServer(id: string, message: string): boolean {
    return this.hands.breakServer(id, message);
  }

  /** Removes a server with its ports, as an administrator does. Returns false if there is none. */
  vanish(id: string): boolean {
    return this.hands.vanish(id);
  }

  /** Returns the fates of a new server. */
  fatesOf(server: ServerFacts): readonly ServerFate[] {
    const decided = this.fates.filter(({ rule }) => rule.where?.(server) ?? true);
    for (const state of decided) state.left -= 1;
    this.fates = this.fates.filter(({ left }) => left > 0);
    return decided.map(({ rule }) => rule.fate);
  }
}
