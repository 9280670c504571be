/** The fault plan: which calls go wrong; and the calls that came in, by operation. */

/** One call, as the cloud saw it. */
export interface CloudCall {
  /** e.g. `virtualMachines.put`, `operations.get`, `login.token`, `pages.put`; `unknown` where nothing answers. */
  readonly operation: string;
  readonly method: string;
  readonly path: string;
}

/** What happens to a call. `before`, `after`: its effect. */
export type CallFault =
  | {
      readonly kind: 'status';
      readonly status: number;
      readonly code: string;
      readonly message?: string;
      /** Seconds. Default: no such header. */
      readonly retryAfter?: number;
      /** Default `before`. */
      readonly when?: 'before' | 'after';
    }
  /** The connection ends without an answer. */
  | { readonly kind: 'cut'; readonly when: 'before' | 'after' }
  /** No answer until the caller gives up. */
  | { readonly kind: 'hang'; readonly when: 'before' | 'after' }
  /** Lists do not know for so long what was made or has gone. */
  | { readonly kind: 'lag'; readonly ms: number };

export interface FaultRule {
  /** An operation, `*`, or whatever the function says. */
  readonly on: string | ((call: CloudCall) => boolean);
  readonly fault: CallFault;
  /** So many matching calls get through first. Default 0. */
  readonly after?: number;
  /** So many are hit then. Default 1; `Infinity`: all. */
  readonly times?: number;
}

/** How the operation that makes a VM ends. */
export interface VmFate {
  readonly code: string;
  readonly message: string;
}

interface RuleState {
  readonly rule: FaultRule;
  seen: number;
  hits: number;
}

export class FaultPlan {
  private rules: RuleState[] = [];
  private fates: VmFate[] = [];

  /** Adds a rule; it strikes from the next call on. */
  add(rule: FaultRule): void {
    this.rules.push({ rule, seen: 0, hits: 0 });
  }

  /** The creation of the next VM fails like that, after it was accepted. */
  failNextVm(fate: VmFate): void {
    this.fates.push(fate);
  }

  clear(): void {
    this.rules = [];
    this.fates = [];
  }

  nextFate(): VmFate | undefined {
    return this.fates.shift();
  }

  strike(call: CloudCall): readonly CallFault[] {
    return this.rules.filter((state) => hits(state, call)).map(({ rule }) => rule.fault);
  }
}

function hits(state: RuleState, call: CloudCall): boolean {
  const { on, after = 0, times = 1 } = state.rule;
  const matches = typeof on === 'function' ? on(call) : on === '*' || on === call.operation;
  if (!matches || state.hits >= times) return false;
  state.seen += 1;
  if (state.seen <= after) return false;
  state.hits += 1;
  return true;
}

export class CallLog {
  private counts = new Map<string, number>();

  record({ operation }: CloudCall): void {
    this.counts.set(operation, (this.counts.get(operation) ?? 0) + 1);
  }

  /** Calls since the start or the last `reset`: all, or those of an operation. */
  count(operation?: string): number {
    if (operation !== undefined) return this.counts.get(operation) ?? 0;
    return [...this.counts.values()].reduce((sum, count) => sum + count, 0);
  }

  byOperation(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.counts].sort(([a], [b]) => a.localeCompare(b)));
  }

  reset(): void {
    this.counts.clear();
  }
}
