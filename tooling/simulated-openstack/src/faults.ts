/** Faults of the simulated OpenStack: of calls and of servers. */

import type { RandomSource } from '@nodepool/core';
import {
  FaultPlan as CallFaultPlan,
  type CallFault as AnyCallFault,
  type CloudCall as AnyCloudCall,
  type FaultRule as AnyFaultRule,
} from '@nodepool/simulated-cloud';
import type { ServiceName } from './services.js';
import type { Lag } from './table.js';

/** A call as the cloud received it; its path is relative to the service. */
export interface CloudCall extends AnyCloudCall {
  /** Undefined if the URL belongs to no service. */
  readonly service: ServiceName | undefined;
  /** Name of the caller's project; undefined without a valid token. */
  readonly project: string | undefined;
}

export type CallFault =
  /** `body` replaces the service's own error. */
  | AnyCallFault<{ readonly body?: string }>
  | ({ readonly kind: 'lag' } & Partial<Lag>)
  /** A listing that ends after `to` entries without a link to the next page. */
  | { readonly kind: 'truncate'; readonly to: number };

export type FaultRule = AnyFaultRule<CallFault, CloudCall>;

/** Outcome of a server's boot. */
export type BootBehaviour =
  /** The server enters ERROR; `{id}` in the message is replaced by its id. */
  | { readonly boot: 'error'; readonly message: string; readonly code?: number }
  /** The server stays in BUILD. */
  | { readonly boot: 'never' }
  | { readonly boot: 'ms'; readonly ms: number };

/** Outcome of a server's deletion. */
export type DeletionBehaviour =
  /** The first `times` deletions end in ERROR (`error`) or are refused with 409 (`conflict`). Default 1. */
  | { readonly delete: 'error' | 'conflict'; readonly times?: number }
  /** The deletion is accepted with 204, but the server stays. */
  | { readonly delete: 'never' };

/** Outcome of a server's boot or deletion. */
export type ServerBehaviour = BootBehaviour | DeletionBehaviour;

export interface BehaviourRule {
  readonly behaviour: ServerBehaviour;
  /** Number of future servers that it applies to. Default 1. */
  readonly times?: number;
  readonly where?: (server: ServerFacts) => boolean;
}

/** Properties that a behaviour can depend on. */
export interface ServerFacts {
  readonly id: string;
  readonly name: string;
  readonly project: string;
  readonly metadata: Readonly<Record<string, string>>;
}

/** Actions of the plan on the cloud itself. */
export interface CloudControls {
  revokeTokens(): void;
  breakServer(id: string, message: string): boolean;
  removeServer(id: string): boolean;
}

interface BehaviourState {
  readonly rule: BehaviourRule;
  left: number;
}

export class FaultPlan extends CallFaultPlan<CallFault, CloudCall> {
  private behaviours: BehaviourState[] = [];

  constructor(
    random: RandomSource,
    private readonly controls: CloudControls,
  ) {
    super(random);
  }

  /** Sets the behaviour of servers that are created from now on. */
  nextServers(rule: BehaviourRule): void {
    this.behaviours.push({ rule, left: rule.times ?? 1 });
  }

  /** Ends all rules, also those for future servers. Existing servers keep their behaviours. */
  override clear(): void {
    super.clear();
    this.behaviours = [];
  }

  /** Revokes all issued tokens. */
  revokeTokens(): void {
    this.controls.revokeTokens();
  }

  /** Puts a server into ERROR, as if its host had failed. Returns false if it does not exist. */
  breakServer(id: string, message: string): boolean {
    return this.controls.breakServer(id, message);
  }

  /** Removes a server and its ports, like an administrator. Returns false if it does not exist. */
  removeServer(id: string): boolean {
    return this.controls.removeServer(id);
  }

  /** Returns the behaviours of a new server. */
  behavioursOf(server: ServerFacts): readonly ServerBehaviour[] {
    const decided = this.behaviours.filter(({ rule }) => rule.where?.(server) ?? true);
    for (const state of decided) state.left -= 1;
    this.behaviours = this.behaviours.filter(({ left }) => left > 0);
    return decided.map(({ rule }) => rule.behaviour);
  }
}
