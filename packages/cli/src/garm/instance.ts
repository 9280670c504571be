/** Leases as GARM's instances. */

import { createHash } from 'node:crypto';
import { isJsonObject } from '@nodepool/core';
import type { LeaseDocument } from '@nodepool/requestor/http';
import { lossOf } from '../leasing/lease-keeper.js';

/** The complete identity of an instance: GARM's installation, the pool, and the name of the instance. */
export interface InstanceIdentity {
  readonly controller: string;
  readonly pool: string;
  readonly name: string;
}

/** The facts about an instance that its lease stores. */
export interface StoredInstance extends InstanceIdentity {
  readonly os: string;
  readonly arch: string;
}

/** GARM's `ProviderInstance`. */
export interface ProviderInstance {
  readonly provider_id?: string;
  readonly name: string;
  readonly os_type: string;
  readonly os_arch: string;
  readonly addresses?: readonly { readonly address: string; readonly type: 'public' | 'private' }[];
  readonly status: 'running' | 'error' | 'unknown';
  /** Base64, because the field is a byte slice in Go. */
  readonly provider_fault?: string;
}

/** Returns the name of an instance's leases, which contains its complete identity. */
export function leaseNameOf({ controller, pool, name }: InstanceIdentity): string {
  const hash = createHash('sha256')
    .update(JSON.stringify([controller, pool, name]))
    .digest('hex');
  return `garm-${hash.slice(0, 40)}`;
}

/** Returns the data that a lease of the instance stores. */
export function leaseData(instance: StoredInstance): { readonly garm: Record<string, string> } {
  const { controller, pool, name, os, arch } = instance;
  return { garm: { controller, pool, name, os, arch } };
}

/** Returns the instance of a lease, or undefined if the lease is not one of this program. */
export function instanceOf({ name: leaseName, data }: LeaseDocument): StoredInstance | undefined {
  const stored = isJsonObject(data) && isJsonObject(data['garm']) ? data['garm'] : {};
  const { controller, pool, name, os, arch } = stored;
  if (![controller, pool, name, os, arch].every((value) => typeof value === 'string')) return undefined;
  const instance = { controller, pool, name, os, arch } as StoredInstance;
  return leaseName === leaseNameOf(instance) ? instance : undefined;
}

/** Returns the document of an instance that GARM expects. */
export function documentOf(lease: LeaseDocument, { name, os, arch }: StoredInstance): ProviderInstance {
  const fault = lossOf(lease);
  const [node] = lease.nodes;
  const addresses = [
    ...[node?.public_ipv4, node?.public_ipv6].map((address) => ({ address, type: 'public' as const })),
    { address: node?.private_ipv4, type: 'private' as const },
  ].flatMap(({ address, type }) => (address == null || address === '' ? [] : [{ address, type }]));
  return {
    ...{ provider_id: lease.id, name, os_type: os, os_arch: arch },
    ...(addresses.length === 0 ? {} : { addresses }),
    status: fault !== undefined ? 'error' : lease.state === 'ready' ? 'running' : 'unknown',
    ...(fault === undefined ? {} : { provider_fault: faultOf(fault) }),
  };
}

export function faultOf(text: string): string {
  return Buffer.from(text).toString('base64');
}
