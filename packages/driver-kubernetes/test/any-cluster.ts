/**
 * The cluster of a `*.cluster.test.ts`: the one of `NODEPOOL_TEST_KUBECONFIG`, whose pods a kubelet or its stand-in
 * runs, or a simulated one. A proxy between driver and cluster can cut the connections. Calls of other users go through
 * an HTTP client that shares no code with the driver.
 */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { JsonObject } from '@nodepool/core';
import { startSimulatedKubernetes } from '@nodepool/simulated-kubernetes';
import type { Environment } from '../src/client/kubeconfig.js';
import { environmentOf } from './cluster.js';

const VARIABLE = 'NODEPOOL_TEST_KUBECONFIG';

interface Kubeconfig {
  readonly clusters: readonly { cluster: { server: string; 'certificate-authority'?: string } }[];
  readonly users: readonly { user: { token: string } }[];
}

export interface CallResult {
  readonly status: number;
  readonly body: JsonObject;
}

export interface AnyCluster {
  readonly environment: Environment;
  readonly isReal: boolean;
  /** Sends a call, as the administrator or with the given token. */
  call(method: string, path: string, body?: JsonObject, token?: string): Promise<CallResult>;
  /** Breaks all connections of the driver; new ones are refused until `restore`. */
  cut(): Promise<void>;
  restore(): Promise<void>;
  close(): Promise<void>;
}

export async function openAnyCluster(): Promise<AnyCluster> {
  const real = process.env[VARIABLE];
  const simulated =
    real === undefined
      ? await startSimulatedKubernetes({ settings: { bootMs: 100, deleteMs: 100, controllerMs: 20 } })
      : undefined;
  const file = real ?? simulated?.kubeconfig ?? '';
  const config = JSON.parse(readFileSync(file, 'utf8')) as Kubeconfig;
  const cluster = config.clusters[0]?.cluster;
  if (cluster === undefined) throw new Error(`${file} has no cluster`);
  const proxy = await Proxy.start(new URL(cluster.server));
  const folder = mkdtempSync(join(tmpdir(), 'any-cluster-'));
  const kubeconfig = join(folder, 'kubeconfig');
  writeFileSync(kubeconfig, JSON.stringify(config).replaceAll(cluster.server, proxy.url));
  const caFile = cluster['certificate-authority'];
  const ca = caFile === undefined ? undefined : readFileSync(caFile);
  const admin = config.users[0]?.user.token ?? '';
  return {
    environment: environmentOf(kubeconfig),
    isReal: real !== undefined,
    call: (method, path, body, token = admin) => send(cluster.server + path, { method, body, token, ca }),
    cut: () => proxy.cut(),
    restore: () => proxy.restore(),
    close: async () => {
      await proxy.cut();
      await simulated?.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

interface Message {
  readonly method: string;
  readonly body: JsonObject | undefined;
  readonly token: string;
  readonly ca: Buffer | undefined;
}

function send(url: string, { method, body, token, ca }: Message): Promise<CallResult> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  return new Promise((resolve, reject) => {
    const start = url.startsWith('https:') ? httpsRequest : httpRequest;
    const call = start(url, { method, headers, agent: false, ...(ca === undefined ? {} : { ca }) }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (piece: string) => (text += piece));
      response.once('end', () => {
        resolve({ status: response.statusCode ?? 0, body: JSON.parse(text) as JsonObject });
      });
      response.once('error', reject);
    });
    call.once('error', reject);
    call.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

/** A TCP proxy on loopback, which passes TLS through. */
class Proxy {
  private readonly sockets = new Set<Socket>();
  private constructor(
    private readonly server: ReturnType<typeof createServer>,
    readonly url: string,
  ) {}

  static async start(target: URL): Promise<Proxy> {
    const server = createServer((socket) => {
      proxy.join(socket, connect(Number(target.port), target.hostname));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('the proxy has no port');
    const proxy = new Proxy(server, `${target.protocol}//127.0.0.1:${address.port}`);
    return proxy;
  }

  async cut(): Promise<void> {
    const closed = new Promise((resolve) => this.server.close(resolve));
    for (const socket of this.sockets) socket.destroy();
    await closed;
  }

  async restore(): Promise<void> {
    await new Promise<void>((resolve) => this.server.listen(Number(new URL(this.url).port), '127.0.0.1', resolve));
  }

  private join(one: Socket, other: Socket): void {
    for (const [socket, peer] of [
      [one, other],
      [other, one],
    ] as const) {
      this.sockets.add(socket);
      socket.on('error', () => peer.destroy());
      socket.once('close', () => {
        this.sockets.delete(socket);
        peer.destroy();
      });
      socket.pipe(peer);
    }
  }
}
