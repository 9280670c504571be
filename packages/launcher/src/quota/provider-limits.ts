/**
 * The limits of a provider's cloud minus the use of other instances in the same project. The ledger counts the nodes
 * of other providers of this installation by their records. Limits are read at the start, every few minutes while there
 * is demand, more often while a request waits for them, and immediately after a refused launch. Outdated limits, and
 * limits that only one read has reported, are read again before a request is declined because of them. Until the first
 * answer the provider counts as unlimited, because a cloud might never report its limits.
 */

import type { Call, Instance, Provider, Timer } from '@nodepool/core';
import { Emitter, QuotaInformation, toDriverError, driverCall } from '@nodepool/core';
import type { LauncherContext } from '../context.js';
import type { QuotaLedger } from './quota-ledger.js';

/** Age at which limits are read again while decisions depend on them, milliseconds. */
const MAX_AGE_MS = 300_000;
/** Delay before limits are read again after a failure, if there is demand, milliseconds. */
const RETRY_MS = 60_000;
/**
 * First delay before limits are read again while a request waits for the use of others, milliseconds. Doubles with each
 * read without a change, up to `MAX_AGE_MS`.
 */
const AWAITED_MS = 15_000;
/** Delay before limits are read again to confirm them, milliseconds. */
const CONFIRM_MS = 5000;
const CALL_TIMEOUT_MS = 60_000;
/** Limit for the list of instances, which has many pages in a large account (ms). */
const LIST_TIMEOUT_MS = 120_000;

export class ProviderLimits {
  private reading = false;
  private readAgain = false;
  private known: { readonly total: QuotaInformation; readonly available: QuotaInformation } | undefined;
  /** `Clock.monotonic` milliseconds at which the limits become too old. */
  private staleAt = -Infinity;
  private timer: Timer | undefined;
  /** `Clock.monotonic` milliseconds at which the timer fires. */
  private timerAt = Infinity;
  private confirmed = UNLIMITED;
  private awaitedMs = AWAITED_MS;
  /** True if instances without a record count against the limits. */
  private othersUseSome = false;
  /** Other providers of this installation with nodes in the same project. */
  private neighbours: ReadonlySet<string> = new Set();
  private readonly reads: Emitter<boolean>;

  constructor(
    private readonly context: LauncherContext,
    private readonly provider: Provider,
    private readonly ledger: QuotaLedger,
    private readonly listInstances: (call: Call) => Promise<readonly Instance[]>,
    /** Aborts when the provider is stopped. */
    private readonly signal: AbortSignal,
  ) {
    // The ledger may have limits of the provider's previous configuration, which may name another cloud.
    ledger.setProviderLimit(provider.config.name, UNLIMITED);
    this.reads = new Emitter((error) => context.log.error('A listener to limits of a provider failed', error));
    signal.addEventListener('abort', () => this.timer?.cancel(), { once: true });
  }

  /** The total limits of the cloud, including what is in use. */
  get total(): QuotaInformation {
    return this.known?.total ?? UNLIMITED;
  }

  /**
   * The total limits that the last two reads agree on: the greater of both for each resource. After a failed read,
   * these are the last known limits.
   */
  get confirmedTotal(): QuotaInformation {
    return this.confirmed;
  }

  /** True until the limits become too old to decline a request because of them. */
  get isCurrent(): boolean {
    return this.context.clock.monotonic() < this.staleAt;
  }

  /** True if the cloud has limits that may have changed since they were read. */
  get isOutdated(): boolean {
    return this.provider.getQuotaLimits !== undefined && !this.isCurrent;
  }

  /** Reads the limits. Resolves even if that fails. */
  async load(): Promise<void> {
    if (this.provider.getQuotaLimits !== undefined) await this.read();
  }

  /**
   * Calls the listener after each read, even a failed one, until the returned function is called. `changed` is true if
   * the limits differ from the last ones.
   */
  onRead(listener: (changed: boolean) => void): () => void {
    return this.reads.on(listener);
  }

  /** Reads the limits again if they are too old. Called when a decision depends on them. */
  needed(): void {
    if (!this.isCurrent) this.refresh();
  }

  /**
   * Reads the limits again, earlier than usual if unrecorded instances use some of them. Called while a request waits
   * for higher limits, because no other event may occur.
   */
  awaited(): void {
    const staleMs = Math.max(this.staleAt - this.context.clock.monotonic(), 0);
    this.refreshAfter(this.othersUseSome ? Math.min(this.awaitedMs, staleMs) : staleMs);
  }

  /** Reads the limits again soon, or at once if too old. Called while a request exceeds limits that may be outdated. */
  doubted(): void {
    if (this.isCurrent) this.refreshAfter(CONFIRM_MS);
    else this.refresh();
  }

  /** Reads the limits again at once, because the cloud has contradicted them. */
  invalidate(): void {
    this.readAgain = this.reading;
    this.refresh();
  }

  private refreshAfter(delayMs: number): void {
    const { clock } = this.context;
    const at = clock.monotonic() + delayMs;
    if (this.provider.getQuotaLimits === undefined || this.signal.aborted) return;
    if (this.timer !== undefined && this.timerAt <= at) return;
    this.timer?.cancel();
    this.timerAt = at;
    this.timer = clock.schedule(delayMs, () => {
      this.timer = undefined;
      this.refresh();
    });
  }

  private refresh(): void {
    if (this.reading || this.provider.getQuotaLimits === undefined || this.signal.aborted) return;
    this.context.tasks.run(`read the limits of provider ${this.provider.config.name}`, () => this.read());
  }

  private async read(): Promise<void> {
    const { clock } = this.context;
    this.reading = true;
    const last = this.known;
    const before = last?.available;
    try {
      do {
        this.readAgain = false;
        await this.readOnce();
        this.staleAt = clock.monotonic() + MAX_AGE_MS;
      } while (this.wantsMore());
    } catch (error) {
      if (this.signal.aborted) return;
      this.staleAt = clock.monotonic() + RETRY_MS;
      this.context.log.warn('The limits of the provider could not be read; retrying', {
        provider: this.provider.config.name,
        until_then: this.known === undefined ? 'unlimited' : 'as last known',
        error: toDriverError(error),
      });
    } finally {
      this.reading = false;
      if (last !== undefined) this.confirmed = greater(last.total, this.total);
      const after = this.known?.available;
      const changed = after !== undefined && (before === undefined || !isSame(before, after));
      this.awaitedMs = changed ? AWAITED_MS : Math.min(this.awaitedMs * 2, MAX_AGE_MS);
      // Waiting requests are scheduled again.
      if (!this.signal.aborted) this.reads.emit(changed);
    }
  }

  private wantsMore(): boolean {
    return this.readAgain && !this.signal.aborted;
  }

  private async readOnce(): Promise<void> {
    const { provider, signal } = this;
    const { clock, log, store } = this.context;
    const within = (ms: number): Call => ({ signal, deadline: clock.monotonic() + ms, log });
    const what = `reading the limits of provider ${provider.config.name}`;
    const answer = await driverCall(
      clock,
      what,
      within(CALL_TIMEOUT_MS),
      async (each) => provider.getQuotaLimits?.(each) ?? UNLIMITED,
    );
    // Copied because the answer may be an object of another copy of this library; this also rejects invalid answers.
    const total = QuotaInformation.limit(answer.toResources());
    // After a start, the cloud may answer before the installation id is read from ZooKeeper.
    await store.ready({ signal });
    const instances = isUnlimited(total)
      ? []
      : await driverCall(clock, what, within(LIST_TIMEOUT_MS), this.listInstances);
    if (signal.aborted) return;
    const { others, neighbours } = this.othersUse(instances);
    this.neighbours = neighbours;
    this.othersUseSome = Object.keys(others.toResources()).length > 0;
    const available = total.subtract(others);
    const before = this.known?.available;
    this.known = { total, available };
    this.ledger.setProviderLimit(provider.config.name, available, neighbours);
    if (before !== undefined && isSame(before, available)) return;
    log.info('Limits of the provider', {
      provider: provider.config.name,
      limits: total.toResources(),
      used_by_others: others.toResources(),
    });
  }

  /**
   * Sums the use of instances without a record. The ledger counts the records of this provider, and of those that
   * `neighbours` names: the other providers of this installation that have nodes in the same project.
   */
  private othersUse(instances: readonly Instance[]): {
    readonly others: QuotaInformation;
    readonly neighbours: ReadonlySet<string>;
  } {
    const { nodes, installation } = this.context.store;
    const own = this.provider.config.name;
    let others = NOTHING;
    // A neighbour without usable nodes may launch some at any moment.
    const neighbours = new Set([...this.neighbours].filter((provider) => !this.hasUsableNodes(provider)));
    for (const { tags, deleted, resources } of instances) {
      const { nodepool_provider_name: provider, nodepool_node_id: nodeId = '' } = tags;
      const isOurs = (tags.nodepool_installation ?? installation.id) === installation.id;
      if (deleted || (isOurs && provider === own)) continue;
      if (isOurs && provider !== undefined && nodes.get(nodeId)?.node.provider === provider) neighbours.add(provider);
      else others = others.add(QuotaInformation.use({ instances: 1, ...resources }));
    }
    return { others, neighbours };
  }

  private hasUsableNodes(provider: string): boolean {
    for (const { node } of this.context.store.nodes.ofProvider(provider)) {
      if (node.state === 'ready' || node.state === 'in-use') return true;
    }
    return false;
  }
}

const UNLIMITED = QuotaInformation.limit({});
const NOTHING = QuotaInformation.use({});

/** Returns the greater of both limits for each resource. */
function greater(a: QuotaInformation, b: QuotaInformation): QuotaInformation {
  return QuotaInformation.limit(
    Object.fromEntries(b.entries().map(([resource, amount]) => [resource, Math.max(a.get(resource), amount)])),
  );
}

function isUnlimited(limits: QuotaInformation): boolean {
  return Object.keys(limits.toResources()).length === 0;
}

function isSame(a: QuotaInformation, b: QuotaInformation): boolean {
  return JSON.stringify(a.toResources()) === JSON.stringify(b.toResources());
}
