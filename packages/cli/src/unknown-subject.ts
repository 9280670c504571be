/** The refusal of commands about a node, a request, a label or a provider that does not exist. */

import { didYouMean } from '@nodepool/config';
import { RefusedError, type StoreContext } from './command-context.js';
import type { DescribedKind } from './describe/description.js';

const LISTS: Readonly<Record<DescribedKind, string>> = {
  node: 'nodepool list',
  request: 'nodepool request-list',
  label: 'nodepool label-list',
  provider: 'nodepool drivers',
};

/** Returns the error, with a suggestion for a misspelt name. */
export function unknownSubject({ store, config }: StoreContext, kind: DescribedKind, name: string): RefusedError {
  const hint = didYouMean(name, namesOf(kind)) ?? `\`${LISTS[kind]}\` shows those that exist`;
  return new RefusedError(`there is no ${kind} ${JSON.stringify(name)}: ${hint}`);

  function namesOf(of: DescribedKind): Iterable<string> {
    const pools = [...store.components.pools()];
    if (of === 'label') return [...config.labels.keys(), ...pools.flatMap(({ supported_labels: labels }) => labels)];
    if (of !== 'provider') return [];
    return [...config.providers.keys(), ...config.brokenProviders.keys(), ...pools.map((pool) => pool.provider_name)];
  }
}
