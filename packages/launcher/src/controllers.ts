/**
 * The controllers of the launcher. Each has a work queue and reconciles one kind of object with the configuration and
 * the records. `ProviderRuntime` starts two further controllers per provider: `Deletions` and the search for leaked
 * resources.
 */

import type { LauncherContext } from './context.js';
import type { Controller } from './controller.js';
import { AbandonedBacking } from './maintenance/abandoned-backing.js';
import { AbandonedProviders } from './maintenance/abandoned-providers.js';
import { EmptyNodes } from './maintenance/empty-nodes.js';
import { LostRequests } from './maintenance/lost-requests.js';
import { NodeExpiration } from './maintenance/node-expiration.js';
import { SurplusNodes } from './maintenance/surplus-nodes.js';
import { OrphanedLocks } from './maintenance/orphaned-locks.js';
import { DeletedRequests } from './maintenance/deleted-requests.js';
import { MinReady } from './supply/min-ready.js';
import type { QuotaLedger } from './quota/quota-ledger.js';

/**
 * Creates the controllers of a launcher. `serves` returns true if it serves the provider, `launches` if it also
 * launches nodes there.
 */
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
    new SurplusNodes(context, launches),
    new DeletedRequests(context, ledger, serves),
    new LostRequests(context, ledger),
    new OrphanedLocks(context),
    new EmptyNodes(context),
    new MinReady(context, abandoned),
  ];
}
