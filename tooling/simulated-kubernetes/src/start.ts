/** Starts a simulated cluster. */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemRandom, type JsonObject } from '@nodepool/core';
import {
  CallLog,
  CloudServer,
  CloudState,
  FaultPlan,
  type CallFault,
  type CloudCall,
  type CloudConnections,
  type SimulatedCloudOptions,
} from '@nodepool/simulated-cloud';
import { Access } from './access.js';
import { Api, form } from './api.js';
import { Controllers } from './controllers.js';
import { NAMESPACES, PODS, KINDS, type Kind } from './kinds.js';
import { Projects } from './projects.js';
import { DEFAULT_SETTINGS, type ClusterSettings } from './settings.js';
import { Store, type StoredObject } from './store.js';
import { Watches } from './watches.js';

export type SimulatedKubernetesOptions = SimulatedCloudOptions<ClusterSettings>;

/** A running simulated cluster. */
export interface SimulatedKubernetes {
  readonly url: string;
  /** Kubeconfig file with the contexts `admin`, `provisioner` (of OpenShift) and `limited`. */
  readonly kubeconfig: string;
  readonly faults: FaultPlan<CallFault>;
  readonly calls: CallLog;
  /** Refuses connections, and accepts them again. */
  readonly connections: CloudConnections;
  readonly watches: Pick<Watches, 'count' | 'drop' | 'end'>;
  readonly projects: Pick<Projects, 'limit'>;
  /** Returns the objects of a kind, e.g. `pods`, that exist. */
  list(plural: string, namespace?: string): readonly StoredObject[];
  /** Creates an object without a call, as another user of the cluster does. */
  add(plural: string, object: JsonObject, name: string, namespace?: string): void;
  /** Replaces the status of a pod. */
  setPodStatus(namespace: string, name: string, status: JsonObject): void;
  /** Replaces the labels of an object. */
  setLabels(plural: string, name: string, labels: Readonly<Record<string, string>>, namespace?: string): void;
  /** Removes an object at once, and all that a namespace contains. */
  remove(plural: string, name: string, namespace?: string): void;
  /** Accepts another token of the user `admin`, `provisioner` or `limited`. The kubeconfig file does not change. */
  addToken(user: string, token: string): void;
  /** Refuses a token from now on. */
  revokeToken(token: string): void;
  /** Forgets the past, so that watches cannot continue at earlier versions. */
  compact(): void;
  configure(changes: Partial<ClusterSettings>): void;
  close(): Promise<void>;
}

export async function startSimulatedKubernetes(options: SimulatedKubernetesOptions = {}): Promise<SimulatedKubernetes> {
  const folder = await mkdtemp(join(tmpdir(), 'simulated-kubernetes-'));
  const state = new CloudState<ClusterSettings>(options, DEFAULT_SETTINGS);
  const store = new Store(state.clock, () => state.settings.history);
  const controllers = new Controllers(state, store);
  const watches = new Watches(state, store);
  const access = new Access(store, controllers);
  const api = new Api({ state, store, watches, access });
  const projects = new Projects(api, store, access);
  const faults = new FaultPlan(options.random ?? systemRandom);
  const calls = new CallLog();
  const server = new CloudServer<CallFault, CloudCall>({
    ...{ state, faults, calls, form },
    routes: [...api.routes(), ...(state.settings.openshift ? projects.routes() : [])],
    // A watch is a list with a parameter.
    describe: (call, { query }) =>
      query.has('watch') ? { ...call, operation: call.operation.replace(/\.list$/, '.watch') } : call,
  });
  for (const name of ['default', 'kube-system']) addNamespace(store, name);
  state.url = `http://127.0.0.1:${await server.listen(options.port ?? 0)}`;
  const kubeconfig = join(folder, 'kubeconfig');
  await writeFile(kubeconfig, kubeconfigText(state.url, access.tokens));
  return {
    ...{ url: state.url, kubeconfig, faults, calls, watches, projects, connections: server },
    list: (plural, namespace) => store.list(kindOf(plural), namespace),
    add: (plural, object, name, namespace) => void store.add(kindOf(plural), object, name, namespace),
    setPodStatus: (namespace, name, status) => {
      const pod = store.get(PODS, name, namespace);
      if (pod === undefined) throw new Error(`there is no pod ${name} in ${namespace}`);
      store.update(PODS, pod, { status });
    },
    setLabels: (plural, name, labels, namespace) => {
      const object = store.get(kindOf(plural), name, namespace);
      if (object === undefined) throw new Error(`there is no ${name} among ${plural}`);
      store.update(kindOf(plural), object, { metadata: { ...object.metadata, labels: { ...labels } } });
    },
    remove: (plural, name, namespace) => removeAll(store, kindOf(plural), name, namespace),
    addToken: (user, token) => void access.tokens.set(token, user),
    revokeToken: (token) => void access.tokens.delete(token),
    compact: () => store.compact(),
    configure: (changes) => state.configure(changes),
    close: async () => {
      watches.end();
      await server.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function addNamespace(store: Store, name: string): void {
  const body = {
    apiVersion: 'v1',
    kind: 'Namespace',
    spec: { finalizers: ['kubernetes'] },
    status: { phase: 'Active' },
  };
  store.add(NAMESPACES, body, name, undefined);
}

function removeAll(store: Store, kind: Kind, name: string, namespace: string | undefined): void {
  const object = store.get(kind, name, namespace);
  if (object === undefined) throw new Error(`there is no ${kind.kind} ${name}`);
  if (kind === NAMESPACES) {
    for (const inner of KINDS) for (const each of store.list(inner, name)) store.remove(inner, each);
  }
  store.remove(kind, object);
}

function kindOf(plural: string): Kind {
  const kind = KINDS.find((each) => each.plural === plural);
  if (kind === undefined) throw new Error(`there is no kind ${plural}`);
  return kind;
}

function kubeconfigText(server: string, tokens: ReadonlyMap<string, string>): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'simulated', cluster: { server } }],
    users: [...tokens].map(([token, name]) => ({ name, user: { token } })),
    contexts: [...tokens.values()].map((name) => ({ name, context: { cluster: 'simulated', user: name } })),
    'current-context': 'admin',
  });
}
