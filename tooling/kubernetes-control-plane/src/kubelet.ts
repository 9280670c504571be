/**
 * Stands in for the scheduler and the kubelet of a cluster without nodes: it watches the pods, binds them, writes their
 * statuses and events, and removes pods that are being deleted.
 */

import { setMaxListeners } from 'node:events';
import { Agent, request } from 'node:https';
import { isJsonObject, objectAt, reasonOf, sleep, stringAt, systemClock, type JsonObject } from '@nodepool/core';
import { ADMIN_TOKEN, podOutcome, warningEvent } from '@nodepool/simulated-kubernetes';
import type { ControlPlane } from './control-plane.js';

const RETRY_MS = 200;

export class Kubelet {
  private readonly agent: Agent;
  private readonly stopped = new AbortController();
  /** Uids of the pods whose status was written. */
  private readonly done = new Set<string>();
  private running: Promise<void> | undefined;

  constructor(
    private readonly plane: Pick<ControlPlane, 'url' | 'ca'>,
    private readonly say: (line: string) => void,
  ) {
    this.agent = new Agent({ ca: plane.ca, keepAlive: true });
    // Every call listens for the abort.
    setMaxListeners(0, this.stopped.signal);
  }

  start(): void {
    this.running ??= this.run();
  }

  async stop(): Promise<void> {
    this.stopped.abort();
    await this.running;
    this.agent.destroy();
  }

  /** Sends a call as the administrator. Resolves with the status and the object of the answer. */
  async call(method: string, path: string, body?: JsonObject): Promise<{ status: number; object: JsonObject }> {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    let text = '';
    const status = await this.send(method, path, type, body, (piece) => (text += piece));
    const object: unknown = text.startsWith('{') ? JSON.parse(text) : {};
    return { status, object: isJsonObject(object) ? object : {} };
  }

  private async run(): Promise<void> {
    while (!this.hasStopped()) {
      try {
        await this.follow();
      } catch (error) {
        if (this.hasStopped()) return;
        this.say(`the watch of the pods ended: ${error instanceof Error ? error.message : String(error)}`);
        await sleep(systemClock, RETRY_MS);
      }
    }
  }

  private hasStopped(): boolean {
    return this.stopped.signal.aborted;
  }

  /** Watches all pods, the existing ones first. */
  private async follow(): Promise<void> {
    let rest = '';
    const handle = (piece: string): void => {
      const lines = (rest + piece).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) if (line !== '') this.react(JSON.parse(line) as JsonObject);
    };
    await this.send('GET', '/api/v1/pods?watch=true', 'application/json', undefined, handle);
  }

  private react(event: JsonObject): void {
    const pod = objectAt(event, 'object') ?? {};
    if (!['ADDED', 'MODIFIED'].includes(stringAt(event, 'type') ?? '')) return;
    const uid = stringAt(objectAt(pod, 'metadata') ?? {}, 'uid') ?? '';
    const isLeaving = objectAt(pod, 'metadata')?.['deletionTimestamp'] !== undefined;
    const key = isLeaving ? `${uid} leaving` : uid;
    if (this.done.has(key)) return;
    this.done.add(key);
    void this.persist(() => (isLeaving ? this.removePod(pod) : this.runPod(pod)));
  }

  /** Repeats the work until the server has accepted it, or the pod no longer exists. */
  private async persist(work: () => Promise<void>): Promise<void> {
    for (let failures = 0; !this.hasStopped(); failures += 1) {
      try {
        await work();
        return;
      } catch (error) {
        if (failures === 0 && !this.hasStopped()) this.say(`retrying a pod after an error: ${reasonOf(error)}`);
        await sleep(systemClock, RETRY_MS);
      }
    }
  }

  /** Sends a call. Rejects unless the server accepts it, or answers that the object is as wanted or does not exist. */
  private async mustCall(method: string, path: string, body: JsonObject): Promise<void> {
    const { status, object } = await this.call(method, path, body);
    if (status < 300 || status === 404 || status === 409) return;
    throw new Error(`${method} ${path}: ${status} ${stringAt(object, 'message') ?? ''}`);
  }

  private async runPod(pod: JsonObject): Promise<void> {
    const { path, name } = placeOf(pod);
    const now = new Date(systemClock.now()).toISOString().replace(/\.\d+Z$/, 'Z');
    const { nodeName, status, warning } = podOutcome(pod, now);
    if (nodeName !== undefined) {
      const target = { apiVersion: 'v1', kind: 'Node', name: nodeName };
      await this.mustCall('POST', `${path}/${name}/binding`, {
        apiVersion: 'v1',
        kind: 'Binding',
        metadata: { name },
        target,
      });
    }
    await this.mustCall('PATCH', `${path}/${name}/status`, { status });
    if (warning === undefined) return;
    await this.mustCall('POST', path.replace(/pods$/, 'events'), warningEvent(pod, warning, now));
  }

  private async removePod(pod: JsonObject): Promise<void> {
    const { path, name } = placeOf(pod);
    await this.mustCall('DELETE', `${path}/${name}`, {
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      gracePeriodSeconds: 0,
    });
  }

  private send(
    method: string,
    path: string,
    type: string,
    body: JsonObject | undefined,
    onPiece: (piece: string) => void,
  ): Promise<number> {
    const { signal } = this.stopped;
    return new Promise((resolve, reject) => {
      const text = body === undefined ? '' : JSON.stringify(body);
      // Node.js sends no length of the body of a DELETE by itself, which breaks the next call on the connection.
      const length = { 'content-length': String(Buffer.byteLength(text)) };
      const headers = { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': type, ...length };
      const call = request(this.plane.url + path, { method, headers, agent: this.agent, signal }, (response) => {
        response.setEncoding('utf8');
        response.on('data', onPiece);
        response.once('end', () => resolve(response.statusCode ?? 0));
        response.once('error', reject);
      });
      call.once('error', reject);
      call.end(text);
    });
  }
}

function placeOf(pod: JsonObject): { readonly path: string; readonly name: string } {
  const metadata = objectAt(pod, 'metadata') ?? {};
  const path = `/api/v1/namespaces/${stringAt(metadata, 'namespace') ?? ''}/pods`;
  return { path, name: stringAt(metadata, 'name') ?? '' };
}
