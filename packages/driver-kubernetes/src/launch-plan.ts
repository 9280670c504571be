/**
 * The steps of a launch: the instance itself (a namespace, a project, or a pod in an existing project), then what
 * belongs to it. Names are determined by the launch attempt, so every step can be repeated: an object that exists
 * already comes from an earlier try.
 */

import type { Call, CreateRequest, ExternalId, Instance } from '@nodepool/core';
import {
  ConfigurationError,
  ConflictError,
  DriverError,
  InstanceFailedError,
  NotFoundError,
  objectAt,
  stringAt,
} from '@nodepool/core';
import {
  labelsOf,
  namespaceBody,
  podBody,
  projectRequestBody,
  roleBindingBody,
  roleBody,
  serviceAccountBody,
  tokenSecretBody,
  USER,
} from './bodies.js';
import type { WatchEvent } from './client/client.js';
import type { Collection, Kind, KubernetesObject } from './client/objects.js';
import { PODS, PROJECT_REQUESTS, ROLE_BINDINGS, ROLES, SECRETS, SERVICE_ACCOUNTS } from './client/objects.js';
import type { Cluster } from './cluster.js';
import type { KubernetesLabel } from './config.js';
import { AlreadyExistsError, ForeignObjectError } from './errors.js';
import { attemptName, hasIdentity, OWN_NAME, tagsInLabels, toDescription, toName, type Tags } from './identity.js';
import { podExternalId } from './instance.js';
import { nodeNameOf } from './pod-state.js';
import { needOf } from './quota.js';

/** Time limit for the cluster to write a token; after it, the secret is read again (ms). */
const TOKEN_TIMEOUT_MS = 30_000;

/** A step after the creation of the instance. Repeating it has no further effect. */
export interface Step {
  readonly state: string;
  run(call: Call): Promise<void>;
}

/** Place of the pod that must run before the node is ready. */
export interface PodPlace {
  readonly name: string;
  readonly namespace: string;
}

export class LaunchPlan {
  readonly externalId: ExternalId;
  readonly steps: readonly Step[];
  /** Undefined for an empty namespace or project. */
  readonly pod: PodPlace | undefined;
  /** Name of the instance's object. */
  private readonly name: string;
  private readonly collection: Collection;
  private readonly labels: Tags;
  private token: { readonly token: string; readonly ca: string | undefined } | undefined;

  constructor(
    private readonly cluster: Cluster,
    private readonly request: CreateRequest<KubernetesLabel>,
  ) {
    const { label, pool, tags } = request;
    const { flavour } = cluster.config;
    this.name = attemptName(flavour === 'openshiftpods' ? label.name : pool.name, tags);
    this.labels = labelsOf(label, { ...tags, [OWN_NAME]: this.name }, request.request);
    if (flavour === 'openshiftpods') {
      const namespace = pool.name;
      this.pod = { name: this.name, namespace };
      this.collection = cluster.instances(namespace);
      this.externalId = podExternalId(this.pod);
      this.steps = [{ state: 'reading-token', run: () => this.readOwnToken() }];
      return;
    }
    this.externalId = this.name;
    this.collection = cluster.instances();
    this.pod = label.type === 'pod' ? { name: toName(label.name), namespace: this.name } : undefined;
    this.steps = [
      this.step('service-account', SERVICE_ACCOUNTS, () => serviceAccountBody(this.labels)),
      this.step('token', SECRETS, () => tokenSecretBody(this.labels)),
      ...(flavour === 'openshift' ? [] : [this.step('role', ROLES, () => roleBody(label.type, this.labels))]),
      this.step('role-binding', ROLE_BINDINGS, () =>
        roleBindingBody(this.name, label.type, flavour === 'openshift', this.labels),
      ),
      { state: 'reading-token', run: (call) => this.readToken(call) },
      ...(this.pod === undefined
        ? []
        : [this.step('pod', PODS, () => podBody(toName(label.name), label, this.labels))]),
    ];
  }

  /** Creates the instance. Rejects with `ForeignObjectError` if another owner has an object of this name. */
  async create(call: Call): Promise<void> {
    const { cluster, name, labels } = this;
    const { client, config } = cluster;
    try {
      if (config.flavour === 'openshiftpods') {
        await client.create(this.collection, podBody(name, this.request.label, labels), call);
      } else if (config.flavour === 'openshift') {
        const description = toDescription(tagsInLabels(labels));
        await client.create({ kind: PROJECT_REQUESTS }, projectRequestBody(name, labels, description), call);
      } else {
        await client.create(this.collection, namespaceBody(name, labels), call);
      }
    } catch (error) {
      if (!(error instanceof AlreadyExistsError)) throw error;
      await this.find(call);
    }
  }

  /** Resolves if the instance exists. Rejects with `NotFoundError` if not, and if it belongs to another owner. */
  async find(call: Call): Promise<void> {
    const found = await this.cluster.getInstance(this.collection, this.name, call);
    if (!this.isOurs(found)) {
      throw new ForeignObjectError(`${this.collection.kind.name} ${this.name} exists and has another owner`);
    }
    if (found.isBeingDeleted)
      throw new InstanceFailedError(`${this.collection.kind.name} ${this.name} is being deleted`);
  }

  /** Returns the instance of the completed launch. */
  instance(pod: KubernetesObject | undefined): Instance {
    const { cluster, name } = this;
    const { label, tags } = this.request;
    return {
      externalId: this.externalId,
      ready: true,
      deleted: false,
      tags: { ...tags },
      interfaceIp: pod?.name,
      cloud: cluster.config.contextName,
      hostId: pod === undefined ? undefined : nodeNameOf(pod),
      resources: needOf(label).toResources(),
      connection: {
        type: label.connection.type,
        port: {
          ...(cluster.config.flavour === 'kubernetes' ? { name } : {}),
          ...this.credentials(),
          ...(pod === undefined ? {} : { pod: pod.name }),
        },
      },
    };
  }

  /** Returns the dictionary for Zuul. Pods in an existing project are reached with the credentials of the context. */
  private credentials(): ReturnType<Cluster['connection']> {
    const { cluster, token } = this;
    if (token === undefined) throw new DriverError('unexpected', 'a launch ended without a token');
    if (cluster.config.flavour === 'openshiftpods') {
      return { ...cluster.connection(this.pod?.namespace ?? '', token.token), ca_crt: token.ca ?? null };
    }
    const { insecure } = cluster.access;
    return { ...cluster.connection(this.name, token.token), ...(insecure ? {} : { ca_crt: token.ca ?? null }) };
  }

  /** A project's template can omit the description; its name contains the identity then. */
  private isOurs(found: KubernetesObject): boolean {
    const tags = this.cluster.tagsOf(found);
    if (this.cluster.config.flavour === 'openshift' && Object.keys(tags).length === 0) return true;
    return hasIdentity(tags, this.request.tags);
  }

  private step(state: string, kind: Kind, body: () => Parameters<Cluster['client']['create']>[1]): Step {
    const run = async (call: Call): Promise<void> => {
      try {
        await this.cluster.client.create({ kind, namespace: this.name }, body(), call);
      } catch (error) {
        // The namespace belongs to this attempt alone, and so does everything in it.
        if (!(error instanceof AlreadyExistsError)) throw error;
      }
    };
    return { state, run };
  }

  /** Zuul reaches pods in existing projects with the token and the authority of the context. */
  private async readOwnToken(): Promise<void> {
    const { client, access } = this.cluster;
    const token = await client.token();
    if (token === undefined) {
      throw new ConfigurationError(`${access.source}: the user has no token, which Zuul needs to reach the pods`);
    }
    this.token = { token, ca: access.ca === undefined ? undefined : Buffer.from(access.ca).toString('base64') };
  }

  /** Reads the token that the cluster writes into the secret. A watch without a version begins with the present one. */
  private async readToken(call: Call): Promise<void> {
    const { client } = this.cluster;
    const collection = { kind: SECRETS, namespace: this.name };
    const selection = { fieldSelector: `metadata.name=${USER}` };
    const watched = { isDeleted: false };
    const onEvent = ({ type, object }: WatchEvent): boolean => {
      watched.isDeleted = type === 'DELETED';
      return watched.isDeleted || this.takeToken(object);
    };
    await client.watch(collection, selection, { onEvent, timeoutMs: TOKEN_TIMEOUT_MS }, call);
    if (watched.isDeleted) throw new NotFoundError(`the token of the service account in ${this.name} was deleted`);
    if (this.token === undefined) {
      throw new ConflictError(`the cluster has written no token for the service account in ${this.name} yet`);
    }
  }

  private takeToken(secret: Parameters<typeof objectAt>[0]): boolean {
    const data = objectAt(secret, 'data') ?? {};
    const token = stringAt(data, 'token');
    const ca = stringAt(data, 'ca.crt');
    if (token === undefined || ca === undefined) return false;
    this.token = { token: Buffer.from(token, 'base64').toString('utf8'), ca };
    return true;
  }
}
