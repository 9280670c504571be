/** What a launcher does beside serving requests and deleting nodes: it keeps nodes ready, and clears up after others. */

import type { NodepoolConfig } from '@nodepool/config';
import { AbandonedProviders } from './abandoned-providers.js';
import { LostRequests } from './lost-requests.js';
import { NodeAges } from './node-ages.js';
import { OrphanedLocks } from './orphaned-locks.js';
import { UnreadableNodes } from './unreadable-nodes.js';
import { VanishedRequests } from './vanished-requests.js';
import type { LauncherContext } from '../context.js';
import { MinReady } from '../min-ready/min-ready.js';
import type { QuotaLedger } from '../quota/quota-ledger.js';

export class Upkeep {
  private readonly abandoned: AbandonedProviders;
  private readonly ages: NodeAges;
  private readonly vanished: VanishedRequests;
  private readonly minReady: MinReady;
  private readonly rules: readonly { stop(): void }[];

  constructor(
    context: LauncherContext,
    ledger: QuotaLedger,
    /** Whether nodes of this provider are ours to care for. */
    serves: (provider: string) => boolean,
  ) {
    const abandoned = new AbandonedProviders(context, serves);
    this.abandoned = abandoned;
    this.ages = new NodeAges(context, serves);
    this.vanished = new VanishedRequests(context, ledger, serves);
    this.minReady = new MinReady(context, (provider) => abandoned.isAbandoned(provider));
    abandoned.onChange((provider) => this.minReady.providerChanged(provider));
    this.rules = [
      abandoned,
      this.ages,
      this.vanished,
      new LostRequests(context, ledger),
      new OrphanedLocks(context),
      new UnreadableNodes(context),
    ];
  }

  /** Goes on with another configuration; what `serves` says follows it already. */
  apply(config: NodepoolConfig): void {
    this.abandoned.considerAll();
    this.ages.apply(config);
    this.vanished.considerAll();
    this.minReady.apply(config);
  }

  async stop(): Promise<void> {
    for (const rule of this.rules) rule.stop();
    await this.minReady.stop();
  }
}
