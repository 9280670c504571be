/** Codec of `/nodepool/components/<kind>/<host><sequence>`. A component is written by nobody but itself, and as a whole. */

import { parseObject } from './codec.js';
import { isText, number, oneOf, text } from './fields.js';
import type { ComponentData, ComponentKind, ComponentState, PoolComponentData } from '../component.js';
import { isJsonObject, type JsonObject } from '@nodepool/core';

const STATES: readonly ComponentState[] = ['initializing', 'running', 'paused', 'stopped'];

/** How far a pool goes ahead of others when it does not say. */
const DEFAULT_PRIORITY = 100;

/** The component, or why it cannot be read. `kind` is that of its path. */
export function decodeComponent(data: Uint8Array, kind: ComponentKind): ComponentData | PoolComponentData | string {
  const parsed = parseObject(data);
  if (typeof parsed === 'string') return parsed;
  const raw = parsed.object;
  const common = {
    hostname: text(raw.hostname) ?? '',
    // A state that is new to us: the component is there, and counts.
    state: oneOf(raw.state, STATES) ?? 'running',
    version: text(raw.version) ?? '',
    model_api: number(raw.model_api) ?? 0,
    ...driversOf(raw),
  };
  return kind === 'pool' ? poolComponent(raw, common) : { ...common, kind };
}

/** Versions by driver; absent where a component says nothing of them. */
function driversOf({ drivers }: JsonObject): Pick<ComponentData, 'drivers'> {
  if (!isJsonObject(drivers)) return {};
  return {
    drivers: Object.fromEntries(Object.entries(drivers).filter((entry): entry is [string, string] => isText(entry[1]))),
  };
}

/** Members sorted by name, as the other programs write them. */
export function encodeComponent(component: ComponentData): string {
  return JSON.stringify(Object.fromEntries(Object.entries(component).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))));
}

function poolComponent(raw: JsonObject, common: Omit<ComponentData, 'kind'>): PoolComponentData | string {
  const id = text(raw.id);
  const provider = text(raw.provider_name);
  const labels = raw.supported_labels;
  if (id === null) return 'its "id" is not a text';
  if (provider === null) return 'its "provider_name" is not a text';
  if (!Array.isArray(labels)) return 'its "supported_labels" is not a list';
  return {
    ...common,
    kind: 'pool',
    id,
    name: text(raw.name) ?? '',
    provider_name: provider,
    supported_labels: labels.filter(isText),
    priority: number(raw.priority) ?? DEFAULT_PRIORITY,
    paused: raw.paused === true,
  };
}
