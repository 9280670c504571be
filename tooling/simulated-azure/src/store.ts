/** Resources of the resource manager by id. Their state is computed from the time when it is read. */

import type { Clock, JsonObject } from '@nodepool/core';
import { ACCOUNT } from './settings.js';

export type ResourceType =
  | 'Microsoft.Compute/virtualMachines'
  | 'Microsoft.Compute/disks'
  | 'Microsoft.Compute/images'
  | 'Microsoft.Network/networkInterfaces'
  | 'Microsoft.Network/publicIPAddresses';

/** One resource. */
export interface Resource {
  readonly id: string;
  readonly name: string;
  readonly type: ResourceType;
  readonly group: string;
  readonly location: string;
  tags: Readonly<Record<string, string>>;
  /** Top-level fields besides these, e.g. `sku`. */
  extra: JsonObject;
  properties: JsonObject;
  /** Body of the request that created it; an identical one changes nothing. */
  readonly request: JsonObject | undefined;
  readonly createdAt: number;
  /** Its creation ends then. */
  readyAt: number;
  /** Why its creation fails. */
  failure: { readonly code: string; readonly message: string } | undefined;
  /** It is gone from then on. */
  goneAt: number;
}

export interface NewResource {
  readonly type: ResourceType;
  readonly group: string;
  readonly name: string;
  readonly location: string;
  readonly tags: Readonly<Record<string, string>>;
  readonly extra?: JsonObject;
  readonly properties: JsonObject;
  readonly request?: JsonObject;
  readonly workMs: number;
}

/** How long after its end a resource is remembered, for lists that lag. */
const REMEMBERED_MS = 600_000;

export class Store {
  private readonly resources = new Map<string, Resource>();

  constructor(readonly clock: Clock) {}

  put(made: NewResource): Resource {
    const id = idOf(made.type, made.group, made.name);
    const now = this.clock.monotonic();
    const resource: Resource = {
      id,
      name: made.name,
      type: made.type,
      group: made.group,
      location: made.location,
      tags: made.tags,
      extra: made.extra ?? {},
      properties: made.properties,
      request: made.request,
      createdAt: this.get(id)?.createdAt ?? now,
      readyAt: now + made.workMs,
      failure: undefined,
      goneAt: Infinity,
    };
    this.resources.set(id.toLowerCase(), resource);
    return resource;
  }

  /** What exists at the moment. */
  get(id: string): Resource | undefined {
    const found = this.resources.get(id.toLowerCase());
    return found === undefined || found.goneAt <= this.clock.monotonic() ? undefined : found;
  }

  find(type: ResourceType, group: string, name: string): Resource | undefined {
    return this.get(idOf(type, group, name));
  }

  remove(resource: Resource, afterMs: number): void {
    resource.goneAt = Math.min(resource.goneAt, this.clock.monotonic() + afterMs);
  }

  /** Those of a type; with a lag, as they were so long ago. */
  list(type: ResourceType, lagMs = 0): readonly Resource[] {
    const now = this.clock.monotonic();
    for (const [key, { goneAt }] of this.resources) if (goneAt + REMEMBERED_MS < now) this.resources.delete(key);
    return [...this.resources.values()].filter(
      (resource) =>
        resource.type === type && resource.goneAt > now - lagMs && (lagMs === 0 || resource.createdAt <= now - lagMs),
    );
  }

  stateOf({ readyAt, failure, goneAt }: Resource): string {
    if (goneAt !== Infinity) return 'Deleting';
    if (readyAt > this.clock.monotonic()) return 'Creating';
    return failure === undefined ? 'Succeeded' : 'Failed';
  }

  /** As the API shows it. */
  show(resource: Resource): JsonObject {
    const { id, name, type, location, tags, extra, properties } = resource;
    return {
      id,
      name,
      type,
      location,
      tags,
      ...extra,
      properties: { ...properties, provisioningState: this.stateOf(resource) },
    };
  }
}

export function idOf(type: string, group: string, name: string): string {
  return `/subscriptions/${ACCOUNT.subscriptionId}/resourceGroups/${group}/providers/${type}/${name}`;
}

export function tagsIn(value: unknown): Readonly<Record<string, string>> {
  if (typeof value !== 'object' || value === null) return {};
  return Object.fromEntries(Object.entries(value).map(([key, tag]) => [key, String(tag)]));
}
