/** The controllers of the cluster: service accounts, tokens, the end of namespaces, and pods. */

import { objectAt, stringAt, type JsonObject } from '@nodepool/core';
import type { CloudState } from '@nodepool/simulated-cloud';
import { EVENTS, KINDS, NAMESPACES, PODS, SECRETS, SERVICE_ACCOUNTS } from './kinds.js';
import { podOutcome, warningEvent, type PodFailureKind } from './kubelet.js';
import type { ClusterSettings } from './settings.js';
import type { Change, Store, StoredObject } from './store.js';

const ACCOUNT = 'kubernetes.io/service-account.name';
const TOKEN_TYPE = 'kubernetes.io/service-account-token';
/** Certificate of the authority in secrets; clients only pass it on. */
const CA = Buffer.from('-----BEGIN CERTIFICATE-----\nc2ltdWxhdGVk\n-----END CERTIFICATE-----\n').toString('base64');

/** Interval of looks at a dead node (ms). */
const DEAD_MS = 1000;
/** Condition of a namespace whose pod has no kubelet that ends it. */
const REMAINING = {
  type: 'NamespaceContentRemaining',
  status: 'True',
  reason: 'SomeResourcesRemain',
  message: 'Some resources are remaining: pods. has 1 resource instances',
};

export class Controllers {
  /** The service accounts of issued tokens. */
  private readonly accounts = new Map<string, { readonly namespace: string; readonly name: string }>();

  constructor(
    private readonly state: CloudState<ClusterSettings>,
    private readonly store: Store,
  ) {
    store.follow(undefined, (change) => this.react(change));
  }

  /** Returns the service account of a token that still exists. */
  accountOf(token: string): { readonly namespace: string; readonly name: string } | undefined {
    const account = this.accounts.get(token);
    const exists =
      account !== undefined && this.store.get(SERVICE_ACCOUNTS, account.name, account.namespace) !== undefined;
    return exists ? account : undefined;
  }

  private react({ type, kind, object, before }: Change): void {
    const { controllerMs, bootMs, deleteMs, podFailure } = this.state.settings;
    if (type === 'DELETED') return;
    const isNew = before === undefined;
    const isDeletion =
      object.metadata.deletionTimestamp !== undefined && before?.metadata.deletionTimestamp === undefined;
    if (kind === NAMESPACES && isNew) this.later(controllerMs, () => this.addDefaultAccount(object.metadata.name));
    if (kind === NAMESPACES && isDeletion) this.later(deleteMs, () => this.endNamespace(object));
    if (kind === SECRETS && isNew && object['type'] === TOKEN_TYPE) {
      this.later(controllerMs, () => this.writeToken(object));
    }
    if (kind === PODS && isNew) {
      const { kind: failure, forMs = 0 } = podFailure ?? {};
      if (failure !== undefined) this.later(0, () => this.runPod(object, failure));
      if (failure !== undefined && forMs < Infinity) this.later(forMs, () => this.runPod(object, 'starting'));
      if (forMs < Infinity) this.later(forMs + bootMs, () => this.runPod(object));
    }
    if (kind === PODS && isDeletion) this.later(deleteMs, () => this.endPod(object));
  }

  private later(ms: number, work: () => void): void {
    this.state.clock.schedule(ms, work, { background: true });
  }

  private addDefaultAccount(namespace: string): void {
    const isActive = this.store.get(NAMESPACES, namespace)?.metadata.deletionTimestamp === undefined;
    if (!isActive || this.store.get(SERVICE_ACCOUNTS, 'default', namespace) !== undefined) return;
    this.store.add(SERVICE_ACCOUNTS, { apiVersion: 'v1', kind: 'ServiceAccount' }, 'default', namespace);
  }

  /** Writes the token of a secret, or deletes a secret without a service account. */
  private writeToken(secret: StoredObject): void {
    const { namespace = '', annotations = {} } = secret.metadata;
    const name = annotations[ACCOUNT] ?? '';
    if (this.store.get(SERVICE_ACCOUNTS, name, namespace) === undefined) {
      this.store.remove(SECRETS, secret);
      return;
    }
    const token = `token-of-${namespace}-${name}-${secret.metadata.uid}`;
    this.accounts.set(token, { namespace, name });
    const data = { 'ca.crt': CA, namespace: base64(namespace), token: base64(token) };
    this.store.update(SECRETS, secret, { data });
  }

  private endPod(pod: StoredObject): void {
    if (this.state.settings.isNodeDead === true) this.later(DEAD_MS, () => this.endPod(pod));
    else this.store.remove(PODS, pod);
  }

  private endNamespace(namespace: StoredObject): void {
    const { name } = namespace.metadata;
    if (this.state.settings.isNodeDead === true) {
      const status = { phase: 'Terminating', conditions: [REMAINING] };
      const present = this.store.get(NAMESPACES, name);
      if (present?.metadata.uid !== namespace.metadata.uid) return;
      const isKnown = objectAt(present, 'status')?.['conditions'] !== undefined;
      if (!isKnown) this.store.update(NAMESPACES, present, { status });
      this.later(DEAD_MS, () => this.endNamespace(namespace));
      return;
    }
    for (const kind of KINDS) for (const object of this.store.list(kind, name)) this.store.remove(kind, object);
    this.store.remove(NAMESPACES, namespace);
  }

  private runPod(pod: StoredObject, state?: PodFailureKind | 'starting'): void {
    const now = new Date(this.state.clock.now()).toISOString();
    const { nodeName, status, warning } = podOutcome(pod, now, state);
    const spec = { ...objectAt(pod, 'spec'), ...(nodeName === undefined ? {} : { nodeName }) };
    if (this.store.update(PODS, pod, { spec, status }) === undefined || warning === undefined) return;
    const event = warningEvent(pod, warning, now);
    this.store.add(EVENTS, event, nameIn(event), pod.metadata.namespace);
  }
}

function nameIn(object: JsonObject): string {
  return stringAt(objectAt(object, 'metadata') ?? {}, 'name') ?? '';
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}
