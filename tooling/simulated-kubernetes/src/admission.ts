/** Checks of new objects: names, labels, namespaces, default accounts and quotas. */

import { isJsonObject, objectAt, stringAt, textsAt, type JsonObject, type JsonValue } from '@nodepool/core';
import { apiError, forbidden, invalid, notFound } from './api-error.js';
import { problemOf } from './definitions.js';
import { NAMESPACES, PODS, QUOTAS, SERVICE_ACCOUNTS, type Kind } from './kinds.js';
import type { Store, StoredObject } from './store.js';

const DNS_LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const DNS_SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const LABEL_VALUE = /^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$/;
const LABEL_NAME = /^([a-z0-9.-]{1,253}\/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/;

/** Throws the API's answer for a body that the published definition or the rules for names refuse. */
export function checkObject(kind: Kind, body: JsonObject): string {
  const problem = problemOf(kind.definition, body);
  if (problem !== undefined) throw apiError(400, `${kind.kind} in version "v1" cannot be handled: ${problem}`);
  for (const [key, expected] of [
    ['apiVersion', kind.apiVersion],
    ['kind', kind.kind],
  ] as const) {
    if (body[key] === expected) continue;
    throw apiError(
      400,
      `the ${key} in the data (${JSON.stringify(body[key])}) does not match the expected ${expected}`,
    );
  }
  const metadata = objectAt(body, 'metadata') ?? {};
  const name = stringAt(metadata, 'name') ?? '';
  const isLabel = kind === NAMESPACES;
  if (!(isLabel ? DNS_LABEL : DNS_SUBDOMAIN).test(name) || name.length > (isLabel ? 63 : 253)) {
    const rule = `a lowercase RFC 1123 ${isLabel ? 'label' : 'subdomain'} must consist of lower case alphanumeric characters`;
    throw invalid(kind.kind, name, 'metadata.name', `"${name}": ${rule}`);
  }
  for (const [key, value] of Object.entries(textsAt(metadata, 'labels'))) {
    if (!LABEL_NAME.test(key)) throw invalid(kind.kind, name, 'metadata.labels', `"${key}": name part must be valid`);
    if (!LABEL_VALUE.test(value)) throw invalid(kind.kind, name, 'metadata.labels', `"${value}": a valid label`);
  }
  for (const key of Object.keys(textsAt(metadata, 'annotations'))) {
    if (!LABEL_NAME.test(key))
      throw invalid(kind.kind, name, 'metadata.annotations', `"${key}": name part must be valid`);
  }
  return name;
}

/** Throws unless the namespace accepts new objects. */
export function checkNamespace(store: Store, kind: Kind, name: string, namespace: string): void {
  const found = store.get(NAMESPACES, namespace);
  if (found === undefined) throw notFound('namespaces', namespace);
  if (found.metadata.deletionTimestamp === undefined) return;
  const message = `namespace ${namespace} is being terminated`;
  throw forbidden(
    kind.plural,
    name,
    `unable to create new content in namespace ${namespace} because it is being terminated`,
    [{ reason: 'NamespaceTerminating', message, field: 'metadata.namespace' }],
  );
}

/** Throws if a pod's service account does not exist yet, or if a quota refuses the pod. */
export function checkPod(store: Store, pod: JsonObject, name: string, namespace: string): void {
  const spec = objectAt(pod, 'spec') ?? {};
  const account = stringAt(spec, 'serviceAccountName') ?? 'default';
  if (store.get(SERVICE_ACCOUNTS, account, namespace) === undefined) {
    const why = `error looking up service account ${namespace}/${account}: serviceaccount "${account}" not found`;
    throw forbidden('pods', name, why);
  }
  const containers = listOf(spec, 'containers');
  const [container] = containers;
  if (container === undefined) throw invalid('Pod', name, 'spec.containers', 'Required value');
  if (!DNS_LABEL.test(stringAt(container, 'name') ?? '')) {
    throw invalid('Pod', name, 'spec.containers[0].name', `"${stringAt(container, 'name') ?? ''}"`);
  }
  for (const [index, each] of containers.entries()) checkContainer(spec, each, name, `spec.containers[${index}]`);
  for (const quota of store.list(QUOTAS, namespace)) checkQuota(store, quota, pod, name, namespace);
}

function checkContainer(spec: JsonObject, container: JsonObject, pod: string, path: string): void {
  if ((stringAt(container, 'image') ?? '') === '') throw invalid('Pod', pod, `${path}.image`, 'Required value');
  const resources = objectAt(container, 'resources') ?? {};
  const limits = objectAt(resources, 'limits') ?? {};
  const requests = objectAt(resources, 'requests') ?? {};
  for (const [resource, quantity] of [...Object.entries(limits), ...Object.entries(requests)]) {
    // Resources with a domain are devices.
    if (!resource.includes('/') || Number.isInteger(quantityOf(quantity).amount)) continue;
    throw invalid('Pod', pod, `${path}.resources`, `${JSON.stringify(quantity)}: must be an integer`);
  }
  for (const [resource, quantity] of Object.entries(requests)) {
    const [wanted, limit] = [quantityOf(quantity), quantityOf(limits[resource])];
    // Quantities with different suffixes are not compared.
    if (limits[resource] === undefined || wanted.suffix !== limit.suffix || wanted.amount <= limit.amount) continue;
    const why = `${JSON.stringify(quantity)}: must be less than or equal to ${resource} limit`;
    throw invalid('Pod', pod, `${path}.resources.requests`, why);
  }
  const volumes = new Set(listOf(spec, 'volumes').map((volume) => stringAt(volume, 'name')));
  for (const mount of listOf(container, 'volumeMounts')) {
    const volume = stringAt(mount, 'name') ?? '';
    if (!volumes.has(volume)) throw invalid('Pod', pod, `${path}.volumeMounts`, `Not found: "${volume}"`);
  }
}

/** Splits a quantity into its amount and its suffix. */
function quantityOf(value: JsonValue | undefined): { readonly amount: number; readonly suffix: string } {
  const [, digits = '', suffix = ''] =
    /^([0-9.]*)(.*)$/.exec(typeof value === 'number' ? `${value}` : textOf(value)) ?? [];
  return { amount: Number(digits), suffix };
}

function textOf(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : '';
}

/** Supports quotas of the number of pods and of their CPUs. */
function checkQuota(store: Store, quota: StoredObject, pod: JsonObject, name: string, namespace: string): void {
  const hard = textsAt(objectAt(quota, 'spec') ?? {}, 'hard');
  const pods = store.list(PODS, namespace).filter((each) => !hasEnded(each));
  for (const [resource, limit] of Object.entries(hard)) {
    const amount = resource === 'pods' ? (): number => 1 : resource === 'requests.cpu' ? cpuOf : undefined;
    if (amount === undefined) continue;
    const requested = amount(pod);
    const quotaName = quota.metadata.name;
    if (requested === undefined) throw forbidden('pods', name, `failed quota: ${quotaName}: must specify ${resource}`);
    const used = pods.reduce((sum, each) => sum + (amount(each) ?? 0), 0);
    if (used + requested <= Number(limit)) continue;
    const amounts = `requested: ${resource}=${requested}, used: ${resource}=${used}, limited: ${resource}=${limit}`;
    throw forbidden('pods', name, `exceeded quota: ${quotaName}, ${amounts}`);
  }
}

function hasEnded(pod: JsonObject): boolean {
  const phase = stringAt(objectAt(pod, 'status') ?? {}, 'phase');
  return phase === 'Failed' || phase === 'Succeeded';
}

function cpuOf(pod: JsonObject): number | undefined {
  const [container = {}] = listOf(objectAt(pod, 'spec') ?? {}, 'containers');
  const requests = objectAt(objectAt(container, 'resources') ?? {}, 'requests') ?? {};
  const cpu = requests['cpu'];
  return cpu === undefined ? undefined : Number(cpu);
}

function listOf(object: JsonObject, key: string): readonly JsonObject[] {
  const value: JsonValue | undefined = object[key];
  return Array.isArray(value) ? (value as readonly JsonValue[]).filter(isJsonObject) : [];
}
