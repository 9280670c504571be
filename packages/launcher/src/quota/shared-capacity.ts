/** The capacity that the providers of a launcher have together, against which shares are measured. */

import type { Clock, ProviderConfig } from '@nodepool/core';
import type { QuotaLedger } from './quota-ledger.js';
import { SHARED_RESOURCES } from '../fairness/account.js';
import type { Capacity } from '../fairness/fair-use.js';

/** Time for which the capacity is used again, milliseconds. Limits change rarely, and every decision needs them. */
const CACHED_MS = 1000;

/** Returns a function that returns the capacity of the providers. */
export function capacityOf(
  clock: Pick<Clock, 'monotonic'>,
  ledger: Pick<QuotaLedger, 'amountsOf' | 'amountsOfProvider'>,
  providers: () => Iterable<ProviderConfig>,
): () => Capacity {
  let known: { readonly at: number; readonly capacity: Capacity } | undefined;
  return () => {
    const now = clock.monotonic();
    if (known !== undefined && now - known.at < CACHED_MS) return known.capacity;
    const sum = (resource: string): number => {
      let total = 0;
      for (const provider of providers()) total += limitOf(ledger, provider, resource);
      return total;
    };
    const [instances, cores, ram] = SHARED_RESOURCES;
    known = { at: now, capacity: [sum(instances), sum(cores), sum(ram)] };
    return known.capacity;
  };
}

/** Returns the smaller of the provider's limit and of the sum of its pools' limits. */
function limitOf(
  ledger: Pick<QuotaLedger, 'amountsOf' | 'amountsOfProvider'>,
  { name, pools }: ProviderConfig,
  resource: string,
): number {
  let ofPools = 0;
  let ignoresQuota = false;
  for (const { name: pool, ignoreProviderQuota = false } of pools.values()) {
    ofPools += ledger.amountsOf({ provider: name, pool, ignoreProviderQuota }).limit[resource] ?? Infinity;
    ignoresQuota ||= ignoreProviderQuota;
  }
  const ofProvider = ignoresQuota ? Infinity : (ledger.amountsOfProvider(name).limit[resource] ?? Infinity);
  return Math.min(ofProvider, ofPools);
}
