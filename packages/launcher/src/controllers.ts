/**
 * The controllers of the launcher. Each has a work queue and reconciles one kind of object with the configuration and
 * the records. `ProviderRuntime` starts two further controllers per provider: `Deletions` and the search for leaked
 * resources.
 */

import { EmptyRecordRounds, type DemandForecast } from '@nodepool/store';
import type { LauncherContext } from './context.js';
import type { Controller } from './controller.js';
import { PastUse } from './fairness/past-use.js';
import { UnservedNodes } from './images/unserved-nodes.js';
import { ImageReviews } from './images/image-reviews.js';
import { AbandonedBacking } from './maintenance/abandoned-backing.js';
import { AbandonedProviders } from './maintenance/abandoned-providers.js';
import { LostRequests } from './maintenance/lost-requests.js';
import { NodeExpiration } from './maintenance/node-expiration.js';
import { OrphanedLocks } from './maintenance/orphaned-locks.js';
import { DeletedRequests } from './maintenance/deleted-requests.js';
import { DemandForecasts } from './supply/forecast/demand-forecasts.js';
import type { Precedence } from './precedence/precedence.js';
import { MinReady } from './supply/min-ready.js';
import { ReadyNodeRemoval } from './supply/ready-node-removal.js';
import type { ReadyTargets } from './supply/ready-targets.js';
import type { QuotaLedger } from './quota/quota-ledger.js';

/** Creates the controllers of a launcher. `serves`: it serves the provider; `launches`: it also launches there. */
export function createControllers(
  context: LauncherContext,
  { ledger, precedence }: { readonly ledger: QuotaLedger; readonly precedence: Precedence },
  serves: (provider: string) => boolean,
  launches: (provider: string) => boolean,
  targets: ReadyTargets,
  publishForecasts: (forecasts: Readonly<Record<string, DemandForecast>>) => void,
): readonly Controller[] {
  const abandoned = new AbandonedProviders(context, serves);
  const forecasts = new DemandForecasts(context, publishForecasts);
  return [
    // The first: the others need its results.
    targets,
    abandoned,
    new AbandonedBacking(context, serves),
    new NodeExpiration(context, serves, precedence),
    new ReadyNodeRemoval(context, { serves, launches }, targets, precedence),
    new DeletedRequests(context, ledger, serves),
    new LostRequests(context, ledger),
    new OrphanedLocks(context),
    new EmptyRecordRounds(context, 'remove empty node records', (call) => context.store.nodes.removeEmpty(call)),
    forecasts,
    new MinReady(context, abandoned, targets, forecasts),
    new ImageReviews(context, launches),
    new UnservedNodes(context, serves),
    new PastUse(context, ledger.order),
  ];
}
