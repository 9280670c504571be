/** Resources of the resource manager by id. Their state is computed from the current time on each read. */

import type { Clock, JsonObject } from '@nodepool/core';
import { ACCOUNT } from './settings.js';

export type ResourceType =
  | 'Microsoft.Compute/virtualMachines'
  | 'Microsoft.Compute/disks'
  | 'Microsoft.Compute/images'
  | 'Microsoft.Network/networkInterfaces'
  | 'Microsoft.Network/publicIPAddresses';

/** A resource. */
export interface Resource {
  readonly id: string;
  readonly name: string;
  readonly type: ResourceType;
  readonly group: string;
  readonly location: string;
  tags: Readonly<Record<string, string>>;
  /** Additional top-level fields, e.g. `sku`. */
  extra: JsonObject;
  properties: JsonObject;
  /** Body of the creation request; an identical request has no effect. */
  readonly request: JsonObject | undefined;
  readonly createdAt: number;
  /** Time at which the creation ends. */
  readyAt: number;
  /** Failure of the creation. */
  failure: { readonly code: string; readonly message: string } | undefined;
  /** Time at which the resource is deleted. */
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

/** Time for which deleted resources are kept for lagging lists (ms). */
const TOMBSTONE_MS = 600_000;

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

  /** Returns the resource if it currently exists. */
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

  /** Returns the resources of a type as they were `lagMs` ago. */
  list(type: ResourceType, lagMs = 0): readonly Resource[] {
    const now = this.clock.monotonic();
    for (const [key, { goneAt }] of this.resources) if (goneAt + TOMBSTONE_MS < now) this.resources.delete(key);
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

  /** Returns the resource in the API's format. */
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
