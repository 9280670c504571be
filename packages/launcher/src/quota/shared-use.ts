import type { QuotaInformation } from '@nodepool/core';
import type { NodeEntry } from '@nodepool/store';
import { roleOf } from './counted-node.js';
import { useOf } from './need.js';

/** Returns the resources that count for the tenant of a node; undefined for a ready node that no request has. */
export function sharedUse({ node, locked }: NodeEntry): QuotaInformation | undefined {
  return roleOf(node, locked) === 'free' ? undefined : useOf(node.resources);
}
