/** Codec of `/nodepool/components/<kind>/<host><sequence>`. A component writes only its own znode, completely. */

import { parseObject } from '../codec/codec.js';
import { isText, number, oneOf, text, texts } from '../codec/fields.js';
import type {
  ComponentData,
  ComponentKind,
  ComponentState,
  DemandForecast,
  MachineOutage,
  PoolComponentData,
} from './component.js';
import { POOL_TROUBLES } from './component.js';
import { isJsonObject, type JsonObject, type JsonValue } from '@nodepool/core';

const STATES: readonly ComponentState[] = ['initializing', 'running', 'paused', 'stopped'];

/** Priority of a pool that does not set one. */
const DEFAULT_PRIORITY = 100;

/** Returns the component, or the reason why it cannot be read. `kind` comes from its path. */
export function decodeComponent(data: Uint8Array, kind: ComponentKind): ComponentData | PoolComponentData | string {
  const raw = parseObject(data);
  if (typeof raw === 'string') return raw;
  const common = {
    hostname: text(raw.hostname) ?? '',
    // An unknown state counts as running, because the component exists.
    state: oneOf(raw.state, STATES) ?? 'running',
    version: text(raw.version) ?? '',
    model_api: number(raw.model_api) ?? 0,
    ...textsOf('drivers', raw),
    ...textsOf('unserved', raw),
    ...configurationOf(raw),
    ...webEndpointOf(raw),
    ...forecastsOf(raw),
    ...(Array.isArray(raw.images) ? { images: raw.images.filter(isText) } : {}),
  };
  return kind === 'pool' ? poolComponent(raw, common) : { ...common, kind };
}

/** Returns texts by name; empty if the component does not report any. */
function textsOf<F extends 'drivers' | 'unserved' | 'unready_labels'>(
  field: F,
  raw: JsonObject,
): Partial<Record<F, Record<string, string>>>;
function textsOf(field: string, raw: JsonObject): Record<string, Record<string, string>> {
  const value = raw[field];
  return isJsonObject(value) ? { [field]: textsIn(value) } : {};
}

function textsIn(value: JsonObject): Record<string, string> {
  return Object.fromEntries(Object.entries(value).filter((entry): entry is [string, string] => isText(entry[1])));
}

/** Returns the fingerprints of the configuration; empty if the component does not report usable ones. */
function configurationOf({ configuration }: JsonObject): Pick<ComponentData, 'configuration'> {
  if (!isJsonObject(configuration)) return {};
  const fingerprint = text(configuration['fingerprint']);
  const { providers } = configuration;
  if (fingerprint === null || !isJsonObject(providers)) return {};
  return { configuration: { fingerprint, providers: textsIn(providers), since: number(configuration['since']) ?? 0 } };
}

/** Returns the web endpoint; empty if the component does not report a usable one. */
function webEndpointOf({ webapp }: JsonObject): Pick<ComponentData, 'webapp'> {
  if (!isJsonObject(webapp)) return {};
  const host = text(webapp['host']);
  const port = number(webapp['port']);
  return host === null || port === null ? {} : { webapp: { host, port } };
}

/** Returns the usable forecasts; empty if the component reports none. */
function forecastsOf({ forecasts }: JsonObject): Pick<ComponentData, 'forecasts'> {
  if (!isJsonObject(forecasts)) return {};
  const usable = Object.entries(forecasts).flatMap(([label, forecast]): [string, DemandForecast][] => {
    if (!isJsonObject(forecast)) return [];
    const [from, lead] = [number(forecast['from']), number(forecast['lead'])];
    const counts = Array.isArray(forecast['counts']) ? forecast['counts'].filter(isCount) : [];
    return from === null || lead === null || counts.length === 0 ? [] : [[label, { from, lead, counts }]];
  });
  return { forecasts: Object.fromEntries(usable) };
}

function isCount(value: JsonValue): value is number {
  return typeof value === 'number' && value >= 0;
}

/** Returns the JSON text with members sorted by name, as the other programs write it. */
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
    ...(Array.isArray(raw.paused_labels) ? { paused_labels: raw.paused_labels.filter(isText) } : {}),
    ...(typeof raw.max_servers === 'number' ? { max_servers: raw.max_servers } : {}),
    ...textsOf('unready_labels', raw),
    ...outagesOf(raw),
    ...troubleOf(raw),
  };
}

/** Returns the machines that are out of service; empty if the pool reports none. */
function outagesOf({ out_of_service: raw }: JsonObject): Pick<PoolComponentData, 'out_of_service'> {
  if (!Array.isArray(raw)) return {};
  const outages = (raw as readonly JsonValue[]).filter(isJsonObject).flatMap((each): MachineOutage | [] => {
    const machine = text(each['machine']);
    if (machine === null) return [];
    const slots = number(each['slots']) ?? 1;
    return {
      machine,
      labels: texts(each['labels']),
      slots,
      reason: text(each['reason']) ?? '',
      since: number(each['since']) ?? 0,
    };
  });
  return { out_of_service: outages };
}

/** Returns the trouble of the pool's provider; empty if the pool reports none. */
function troubleOf({ trouble }: JsonObject): Pick<PoolComponentData, 'trouble'> {
  if (!isJsonObject(trouble)) return {};
  const state = oneOf(trouble['state'], POOL_TROUBLES);
  if (state === undefined) return {};
  const cause = text(trouble['cause']);
  return {
    trouble: {
      ...{ state, reason: text(trouble['reason']) ?? '', since: number(trouble['since']) ?? 0 },
      ...(cause === null ? {} : { cause }),
    },
  };
}
