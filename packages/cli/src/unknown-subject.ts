import { didYouMean } from '@nodepool/config';
import { CommandError, type StoreContext } from './command-context.js';
import type { DescribedKind } from './describe/description.js';

const LISTS: Readonly<Record<DescribedKind, string>> = {
  node: 'nodepool list',
  request: 'nodepool request-list',
  label: 'nodepool label-list',
  provider: 'nodepool drivers',
};

/** Returns the error, with a suggestion for a misspelt name. */
export function unknownSubject(context: StoreContext, kind: DescribedKind, name: string): CommandError {
  return new CommandError(`there is no ${kind} ${JSON.stringify(name)}: ${suggestionFor(context, kind, name)}`);
}

/** Returns a similar name, or the command that lists the names. */
export function suggestionFor(context: StoreContext, kind: DescribedKind, name: string): string {
  return didYouMean(name, namesOf(context, kind)) ?? `\`${LISTS[kind]}\` shows those that exist`;
}

/** Returns the names of labels or providers in the configuration and of registered pools; empty for other kinds. */
export function namesOf({ store, config }: StoreContext, kind: DescribedKind): readonly string[] {
  const pools = [...store.components.pools()];
  if (kind === 'label') return [...config.labels.keys(), ...pools.flatMap(({ supported_labels: labels }) => labels)];
  if (kind !== 'provider') return [];
  return [...config.providers.keys(), ...config.brokenProviders.keys(), ...pools.map((pool) => pool.provider_name)];
}
