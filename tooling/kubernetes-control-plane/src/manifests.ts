/**
 * Applies the manifests of deploy/kubernetes, as docs/deploying.md shows it, to the control plane: the server validates
 * them, stores what was sent, and starts their pods.
 */

import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
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
/**
 * Custom resources are not applied: kube-apiserver 1.20 ends when it stores one if it was built with Go 1.18 or newer,
 * because of a library that it contains (`reflect2` 1.0.1).
 */
const MONITOR = /^kind: ServiceMonitor$/m;

/** Resolves with the problems; empty if the manifests are valid and stored completely. */
export async function checkManifests(plane: ControlPlane, interrupted: AbortSignal): Promise<string[]> {
  const page = await readFile(join(ROOT, 'docs', 'deploying.md'), 'utf8');
  const [, folder] = COMMAND.exec(page) ?? [];
  if (folder === undefined) return [`docs/deploying.md has no line ${String(COMMAND)}`];
  const kubectl = new Kubectl(plane.kubeconfig, interrupted);
  const rendered = (await kubectl.run(['kustomize', join(ROOT, folder)])).split(/^---\n/m);
  const [monitor = '', ...monitors] = rendered.filter((text) => MONITOR.test(text));
  const manifests = rendered
    .filter((text) => !MONITOR.test(text))
    .join('---\n')
    .replaceAll(BUDGETS.written, BUDGETS.served);
  // The namespace must exist before the server validates what is in it.
  await kubectl.run(['apply', '--server-side', '--filename', '-'], manifests);
  const problems: string[] = [];
  const monitoredPort = /^ +port: (.*)$/m.exec(monitor)?.[1] ?? '';
  if (monitoredPort === '' || monitors.length > 0) problems.push('there is not one ServiceMonitor with a port');
  // The second run changes nothing, and refuses fields that the server does not know.
  const sent = itemsOf(await kubectl.run(['apply', '--dry-run=client', '--output=json', '--filename', '-'], manifests));
  for (const object of sent) {
    const stored = parsed(
      await kubectl.run(['get', '--output=json', '--namespace', NAMESPACE, ...referenceTo(object)]),
    );
    problems.push(...differences(object, stored, referenceTo(object).join(' ')));
    if (object['kind'] === 'Service' && !hasPort(stored, monitoredPort)) {
      problems.push(`${referenceTo(object).join(' ')}: has no port ${monitoredPort}, which Prometheus is to read`);
    }
  }
  if (sent.length < PODS) problems.push(`only ${sent.length} objects were applied`);
  const pods = await podsOf(kubectl);
  if (pods !== PODS) problems.push(`the controllers created ${pods} pods instead of ${PODS}`);
  await kubectl.run(['delete', '--timeout=120s', 'namespace', NAMESPACE]);
  return problems;
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
