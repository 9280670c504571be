/** A suspension of deletions, and its znode. */

import { isJsonObject } from '@nodepool/core';

/** Name of the znode that suspends all deletions. */
export const INSTALLATION = 'installation';
const PROVIDER = 'provider-';
/** Format of the ids of nodes. */
export const NODE_ID = /^[0-9]{10}$/;

/** The reason why resources without a record are not deleted at the moment. */
export interface Suspension {
  /** Name of the provider; null for all. */
  readonly provider: string | null;
  readonly reason: string;
  /** Unix seconds. */
  readonly since: number;
  /** Identifier of the process that suspended the deletions. */
  readonly by: string;
  /** Id of the first node that was created after it; null if unknown. */
  readonly nextNode: string | null;
}

/** Returns the name of the znode that suspends the deletions of a provider; null: of all. */
export function nameOfScope(provider: string | null): string {
  return provider === null ? INSTALLATION : `${PROVIDER}${encodeURIComponent(provider)}`;
}

/** Returns the suspension. A znode that cannot be read suspends deletions, too. */
export function decodeSuspension(name: string, data: Uint8Array): Suspension {
  const found = parse(data);
  const { reason, since, by, nextNode } = found;
  return {
    provider: providerIn(name),
    reason: typeof reason === 'string' ? reason : 'its znode cannot be read',
    since: typeof since === 'number' ? since : 0,
    by: typeof by === 'string' ? by : 'unknown',
    nextNode: typeof nextNode === 'string' && NODE_ID.test(nextNode) ? nextNode : null,
  };
}

function parse(data: Uint8Array): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(data));
    return isJsonObject(value) ? value : {};
  } catch {
    // Unreadable data is described by `decodeSuspension`.
    return {};
  }
}

function providerIn(name: string): string | null {
  if (!name.startsWith(PROVIDER)) return null;
  try {
    return decodeURIComponent(name.slice(PROVIDER.length));
  } catch {
    // A name that no program of ours writes suspends the deletions of all providers.
    return null;
  }
}
