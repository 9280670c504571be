/** The room that limits leave for further nodes, for programs that decide how much work they accept. */

import type { Resources } from '@nodepool/core';

/** Amounts that limits leave; resources without a limit are omitted. */
export type FreeResources = Resources;

export interface PoolCapacity {
  readonly provider: string;
  readonly pool: string;
  /** True if the limits of the provider do not count. */
  readonly ignoresProviderQuota: boolean;
  readonly free: FreeResources;
  /** The least that a node of each label needs with any of its machine types. */
  readonly needs: Readonly<Record<string, Resources>>;
}

export interface Capacity {
  readonly pools: readonly PoolCapacity[];
  readonly providers: readonly { readonly provider: string; readonly free: FreeResources }[];
  /** The tenants that have limits. */
  readonly tenants: readonly { readonly tenant: string; readonly free: FreeResources }[];
}
