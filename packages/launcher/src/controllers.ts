/**
 * The controllers of the launcher. Each has a work queue and reconciles one kind of object with the configuration and
 * the records. `ProviderRuntime` starts two further controllers per provider: `Deletions` and the search for leaked
 * resources.
 */

import { EmptyRecordRounds } from '@nodepool/store';
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
import { MinReady } from './supply/min-ready.js';
import { ReadyNodeRemoval } from './supply/ready-node-removal.js';
import type { QuotaLedger } from './quota/quota-ledger.js';

/** Creates the controllers of a launcher. `serves`: it serves the provider; `launches`: it also launches there. */
export function createControllers(
  context: LauncherContext,
  ledger: QuotaLedger,
  serves: (provider: string) => boolean,
  launches: (provider: string) => boolean,
): readonly Controller[] {
  const abandoned = new AbandonedProviders(context, serves);
  return [
    abandoned,
    new AbandonedBacking(context, serves),
    new NodeExpiration(context, serves),
    new ReadyNodeRemoval(context, { serves, launches }),
    new DeletedRequests(context, ledger, serves),
    new LostRequests(context, ledger),
    new OrphanedLocks(context),
    new EmptyRecordRounds(context, 'remove empty node records', (call) => context.store.nodes.removeEmpty(call)),
    new MinReady(context, abandoned),
    new ImageReviews(context, launches),
    new UnservedNodes(context, serves),
    new PastUse(context, ledger.order),
  ];
}
