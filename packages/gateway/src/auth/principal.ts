/** A caller and what it may do. */

import type { LeaseRecord } from '../leases/record.js';

export interface PriorityRange {
  /** The best priority: the lowest number. */
  readonly min: number;
  readonly max: number;
  readonly default: number;
}

/** The rights of a token. */
export interface Grant {
  /** Unique name, under which its nodes are counted. */
  readonly name: string;
  readonly tenant: string | null;
  /** Names of labels; `*` stands for any characters. */
  readonly labels: readonly string[];
  readonly priorities: PriorityRange;
  /** Limit of the nodes of all of its leases; Infinity for none. */
  readonly maxNodes: number;
  /** Limit of the lifetime without renewal, seconds. */
  readonly maxLifetime: number;
}

/** An authenticated caller. */
export interface Principal {
  /** Unique name, for the audit log and the leases. */
  readonly subject: string;
  readonly grant: Grant;
}

/** Returns true if the caller may see and change a lease: that of its tenant, or without a tenant, its own. */
export function mayAccess({ subject, grant }: Principal, { tenant, created_by: creator }: LeaseRecord): boolean {
  return grant.tenant === null ? tenant === null && creator === subject : tenant === grant.tenant;
}

export function mayUseLabel({ labels }: Grant, label: string): boolean {
  return labels.some((pattern) => matches(pattern, label));
}

/** Returns true if the text matches a pattern in which `*` stands for any characters. */
export function matches(pattern: string, text: string): boolean {
  const [first = '', ...rest] = pattern.split('*');
  if (rest.length === 0) return pattern === text;
  if (!text.startsWith(first)) return false;
  let at = first.length;
  const last = rest.pop() ?? '';
  for (const part of rest) {
    const found = text.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return text.length - last.length >= at && text.endsWith(last);
}
