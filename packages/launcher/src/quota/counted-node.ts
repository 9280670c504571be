/** Node records in the form that the quota ledger counts. */

import type { Node, QuotaInformation } from '@nodepool/core';

/** `tentative`: not confirmed yet; `free`: can be evicted; `leaving`: its capacity will soon be free. */
export type Role = 'tentative' | 'busy' | 'free' | 'leaving';

export interface CountedNode {
  readonly id: string;
  readonly node: Node;
  readonly use: QuotaInformation;
  readonly role: Role;
  /** Keys of its scopes. */
  readonly scopes: readonly string[];
}

export function roleOf({ state, allocated_to: request }: Node, locked: boolean): Role {
  switch (state) {
    case 'init':
      return 'tentative';
    case 'ready':
      if (request !== null) return 'busy';
      // The lock's owner is allocating or evicting it; the next change shows which.
      return locked ? 'leaving' : 'free';
    case 'used':
    case 'failed':
    case 'aborted':
    case 'deleting':
    case 'deleted':
      return 'leaving';
    default:
      return 'busy';
  }
}

/** Returns true if both count in the same scopes with the same amounts. */
export function isCountedAs(a: Node, b: Node): boolean {
  if (a === b) return true;
  if (a.provider !== b.provider || a.pool !== b.pool || a.tenant_name !== b.tenant_name) return false;
  if (a.resources === b.resources) return true;
  for (const name in a.resources) if (a.resources[name] !== b.resources?.[name]) return false;
  for (const name in b.resources) if (a.resources?.[name] === undefined) return false;
  return true;
}
