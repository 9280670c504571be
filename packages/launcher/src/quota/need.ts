/** The resources that requests need and that nodes use. */

import { QuotaInformation, type Resources } from '@nodepool/core';

export interface Need {
  /** Need of nodes to launch, which counts against the limits of the pool and of the provider. */
  readonly need: QuotaInformation;
  /** Need that counts against the tenant's limit; it includes ready nodes that counted for another tenant. */
  readonly tenantNeed: QuotaInformation;
}

/** Returns the need that counts in a scope of this kind. */
export function needIn({ kind }: { readonly kind: string }, { need, tenantNeed }: Need): QuotaInformation {
  return kind === 'tenant' ? tenantNeed : need;
}

const ONE_INSTANCE = QuotaInformation.use({ instances: 1 });

/** By the resources, which nodes share. A use for each node would take 300 bytes. */
const uses = new WeakMap<Resources, QuotaInformation>();

/** Returns the resources that a node uses: at least one instance, even if the record of another program says less. */
export function useOf(resources: Resources | null): QuotaInformation {
  if (resources === null) return ONE_INSTANCE;
  let use = uses.get(resources);
  if (use === undefined) {
    use = countedUse(resources);
    uses.set(resources, use);
  }
  return use;
}

function countedUse(resources: Resources): QuotaInformation {
  const amounts: Record<string, number> = { instances: 1 };
  for (const name in resources) {
    const amount = resources[name];
    if (amount !== undefined && Number.isFinite(amount) && amount > 0) amounts[name] = amount;
  }
  return QuotaInformation.use(amounts);
}

/** Returns the reason why a limit can never hold the need; undefined if it can. */
export function describeExcess(name: string, limit: QuotaInformation, need: QuotaInformation): string | undefined {
  if (limit.fits(need)) return undefined;
  for (const [resource, needed] of need.entries()) {
    if (needed > limit.get(resource)) {
      return `it needs ${needed} ${resource}, and the limit of ${name} is ${limit.get(resource)}`;
    }
  }
  return undefined;
}
