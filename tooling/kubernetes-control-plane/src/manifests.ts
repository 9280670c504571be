/**
 * Applies the manifests of deploy/kubernetes, as docs/deploying.md shows it, to the control plane: the server validates
 * them, stores what was sent, and starts their pods.
 */

import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import { isJsonObject, objectAt, sleep, stringAt, systemClock, type JsonObject, type JsonValue } from '@nodepool/core';
import type { ControlPlane } from './control-plane.js';

const ROOT = join(__dirname, '..', '..', '..');
const COMMAND = /^kubectl apply --server-side --kustomize (\S+)$/m;
/** Pods of two launchers, two gateways, two bridges and a builder. */
const PODS = 7;
const NAMESPACE = 'nodepool';
const PODS_TIMEOUT_MS = 60_000;
const POLL_INTERVAL_MS = 500;
/** The control plane is Kubernetes 1.20, whose disruption budgets have an earlier version with the same fields. */
const BUDGETS = { written: 'policy/v1\n', served: 'policy/v1beta1\n' } as const;
const object = (properties: object): object => ({ type: 'object', properties });
const text = { type: 'string' } as const;
/** The part of the Prometheus operator's resource type that the manifests use. The server drops all other fields. */
const MONITOR_TYPE = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'servicemonitors.monitoring.coreos.com' },
  spec: {
    group: 'monitoring.coreos.com',
    scope: 'Namespaced',
    names: { kind: 'ServiceMonitor', plural: 'servicemonitors', singular: 'servicemonitor' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: object({
            spec: object({
              selector: object({ matchLabels: { type: 'object', additionalProperties: text } }),
              endpoints: { type: 'array', items: object({ port: text, path: text, interval: text }) },
            }),
          }),
        },
      },
    ],
  },
} as const;

/** Resolves with the problems; empty if the manifests are valid and stored completely. */
export async function checkManifests(plane: ControlPlane, interrupted: AbortSignal): Promise<string[]> {
  const kubectl = new Kubectl(plane.kubeconfig, interrupted);
  const folder = await exampleFolder();
  const problems: string[] = [];
  // The cluster has no resource types of other projects here: a site needs none of them.
  const sent = await applied(kubectl, folder, problems);
  if (sent.length < PODS) problems.push(`only ${sent.length} objects were applied`);
  const pods = await podsOf(kubectl);
  if (pods !== PODS) problems.push(`the controllers created ${pods} pods instead of ${PODS}`);
  await kubectl.run(['delete', '--timeout=120s', 'namespace', NAMESPACE]);
  return problems;
}

/**
 * Applies the example with the component for the Prometheus operator. Resolves with the problems; with undefined,
 * applying nothing, if the server ends when it stores a custom resource.
 */
export async function checkMonitoring(
  plane: ControlPlane,
  apiServer: string,
  interrupted: AbortSignal,
): Promise<string[] | undefined> {
  if (!(await storesCustomResources(apiServer))) return undefined;
  const kubectl = new Kubectl(plane.kubeconfig, interrupted);
  await kubectl.run(['apply', '--server-side', '--filename', '-'], JSON.stringify(MONITOR_TYPE));
  await kubectl.run(['wait', '--for=condition=established', '--timeout=60s', `crd/${MONITOR_TYPE.metadata.name}`]);
  const overlay = await mkdtemp(join(tmpdir(), 'nodepool-overlay-'));
  try {
    const example = await exampleFolder();
    const lines = [
      'apiVersion: kustomize.config.k8s.io/v1beta1',
      'kind: Kustomization',
      `namespace: ${NAMESPACE}`,
      `resources: [${relative(overlay, example)}]`,
      `components: [${relative(overlay, join(example, '..', 'components', 'service-monitor'))}]`,
    ];
    await writeFile(join(overlay, 'kustomization.yaml'), `${lines.join('\n')}\n`);
    return await monitoringProblems(kubectl, overlay);
  } finally {
    await rm(overlay, { recursive: true });
    await kubectl.run(['delete', '--timeout=120s', 'namespace', NAMESPACE]);
  }
}

async function monitoringProblems(kubectl: Kubectl, overlay: string): Promise<string[]> {
  const problems: string[] = [];
  const sent = await applied(kubectl, overlay, problems);
  const [monitor, ...others] = sent.filter(({ kind }) => kind === MONITOR_TYPE.spec.names.kind);
  if (monitor === undefined || others.length > 0) return [...problems, 'there is not one ServiceMonitor'];
  const monitoredPort = /"port":\s*"([^"]+)"/.exec(JSON.stringify(monitor))?.[1] ?? '';
  for (const service of sent.filter(({ kind }) => kind === 'Service')) {
    if (hasPort(service, monitoredPort)) continue;
    problems.push(`${referenceTo(service).join(' ')}: has no port ${monitoredPort}, which Prometheus is to read`);
  }
  return problems;
}

/**
 * Resolves with false for a kube-apiserver that ends when it stores a custom resource: Go 1.18 or newer built it with
 * `reflect2` 1.0.1. Newer versions of this library have a file for these versions of Go, which the program names.
 */
async function storesCustomResources(apiServer: string): Promise<boolean> {
  return (await readFile(apiServer)).includes('reflect2/go_above_118.go');
}

async function exampleFolder(): Promise<string> {
  const [, folder] = COMMAND.exec(await readFile(join(ROOT, 'docs', 'deploying.md'), 'utf8')) ?? [];
  if (folder === undefined) throw new Error(`docs/deploying.md has no line ${String(COMMAND)}`);
  return join(ROOT, folder);
}

/** Applies a folder, and resolves with its objects. Adds to `problems` what the server did not store as it was sent. */
async function applied(kubectl: Kubectl, folder: string, problems: string[]): Promise<JsonObject[]> {
  const manifests = (await kubectl.run(['kustomize', folder])).replaceAll(BUDGETS.written, BUDGETS.served);
  // The namespace must exist before the server validates what is in it.
  await kubectl.run(['apply', '--server-side', '--filename', '-'], manifests);
  // The second run changes nothing, and refuses fields that the server does not know.
  const sent = itemsOf(await kubectl.run(['apply', '--dry-run=client', '--output=json', '--filename', '-'], manifests));
  for (const object of sent) {
    const reference = referenceTo(object);
    const stored = parsed(await kubectl.run(['get', '--output=json', '--namespace', NAMESPACE, ...reference]));
    problems.push(...differences(object, stored, reference.join(' ')));
  }
  return sent;
}

/** Waits for the controllers, which create the pods a moment later. */
async function podsOf(kubectl: Kubectl): Promise<number> {
  const end = systemClock.monotonic() + PODS_TIMEOUT_MS;
  for (;;) {
    const pods = itemsOf(await kubectl.run(['get', 'pods', '--output=json', '--namespace', NAMESPACE]));
    if (pods.length >= PODS || systemClock.monotonic() > end) return pods.length;
    await sleep(systemClock, POLL_INTERVAL_MS, kubectl.interrupted);
  }
}

function hasPort(service: JsonObject, name: string): boolean {
  const ports = objectAt(service, 'spec')?.['ports'];
  return Array.isArray(ports) && ports.some((port) => isJsonObject(port) && port['name'] === name);
}

function referenceTo(object: JsonObject): string[] {
  const kind = stringAt(object, 'kind') ?? '';
  return [kind.toLowerCase(), stringAt(objectAt(object, 'metadata') ?? {}, 'name') ?? ''];
}

/** Returns where `stored` lacks something that was sent. The server adds defaults, and never changes what was sent. */
function differences(sent: JsonValue, stored: JsonValue | undefined, path: string): string[] {
  if (Array.isArray(sent)) {
    const values: readonly JsonValue[] = sent;
    const others: readonly JsonValue[] = Array.isArray(stored) ? stored : [];
    if (others.length !== values.length) return [`${path}: the list differs`];
    return values.flatMap((value, index) => differences(value, others[index], `${path}[${index}]`));
  }
  if (isJsonObject(sent)) {
    if (!isJsonObject(stored)) return [`${path}: is missing`];
    return Object.entries(sent)
      .filter(([key]) => key !== 'annotations' && key !== 'creationTimestamp' && key !== 'status')
      .flatMap(([key, value]) => differences(value, stored[key], `${path}.${key}`));
  }
  return sent === stored ? [] : [`${path}: ${JSON.stringify(stored)} instead of ${JSON.stringify(sent)}`];
}

function itemsOf(text: string): JsonObject[] {
  const list = parsed(text)['items'];
  return Array.isArray(list) ? list.filter(isJsonObject) : [];
}

function parsed(text: string): JsonObject {
  const value: unknown = JSON.parse(text);
  if (!isJsonObject(value)) throw new Error('kubectl printed no object');
  return value;
}

class Kubectl {
  constructor(
    private readonly kubeconfig: string,
    readonly interrupted: AbortSignal,
  ) {}

  /** Resolves with the output. Rejects with what the program printed if it fails. */
  async run(args: readonly string[], input?: string): Promise<string> {
    const call = promisify(execFile)('kubectl', ['--kubeconfig', this.kubeconfig, ...args], {
      signal: this.interrupted,
      maxBuffer: 16 * 1024 * 1024,
    });
    call.child.stdin?.end(input ?? '');
    const { stdout } = await call;
    return stdout;
  }
}
