/** Runs etcd, kube-apiserver and kube-controller-manager on loopback, with TLS and RBAC. */

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { sleep, systemClock } from '@nodepool/core';
import { freePorts } from '@nodepool/dev-zookeeper';
import { Program } from '@nodepool/harness';
import { ADMIN_TOKEN, LIMITED_TOKEN } from '@nodepool/simulated-kubernetes';
import type { Binaries } from './binaries.js';

const READY_TIMEOUT_MS = 120_000;
const POLL_INTERVAL_MS = 500;

export interface ControlPlane {
  /** e.g. `https://127.0.0.1:26443`. */
  readonly url: string;
  /** Kubeconfig file with the contexts `admin` and `limited`. */
  readonly kubeconfig: string;
  /** Certificate of the server, PEM. */
  readonly ca: string;
  stop(): Promise<void>;
}

/** Starts a control plane without a scheduler and a kubelet: pods remain pending until a client writes their status. */
export async function startControlPlane(
  { etcd, apiServer, controllerManager }: Binaries,
  interrupted: AbortSignal,
): Promise<ControlPlane> {
  const folder = await mkdtemp(join(tmpdir(), 'kubernetes-'));
  const [port = 0, clientPort = 0, peerPort = 0] = await freePorts(3);
  const programs: Program[] = [];
  const start = async (name: string, command: string, args: readonly string[]): Promise<void> => {
    programs.push(await Program.start({ name, command, args, logFile: join(folder, `${name}.log`), cwd: folder }));
  };
  const stop = async (): Promise<void> => {
    for (const program of [...programs].reverse()) await program.stop();
    await rm(folder, { recursive: true, force: true });
  };
  const url = `https://127.0.0.1:${port}`;
  const key = join(folder, 'sa.key');
  const certificates = join(folder, 'certificates');
  const certificate = join(certificates, 'apiserver.crt');
  try {
    await mkdir(certificates);
    await promisify(execFile)('openssl', ['genrsa', '-out', key, '2048']);
    const tokens = join(folder, 'tokens.csv');
    await writeFile(tokens, `${ADMIN_TOKEN},admin,admin,"system:masters"\n${LIMITED_TOKEN},limited,limited\n`);
    const client = `http://127.0.0.1:${clientPort}`;
    const peer = `http://127.0.0.1:${peerPort}`;
    await start('etcd', etcd, [
      ...['--name', 'kubernetes', '--data-dir', join(folder, 'etcd'), '--unsafe-no-fsync'],
      ...['--listen-client-urls', client, '--advertise-client-urls', client],
      ...['--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer],
      ...['--initial-cluster', `kubernetes=${peer}`],
    ]);
    await start('kube-apiserver', apiServer, [
      ...['--etcd-servers', client, '--bind-address', '127.0.0.1', '--advertise-address', '127.0.0.1'],
      ...['--secure-port', String(port), '--insecure-port', '0', '--cert-dir', certificates],
      ...['--token-auth-file', tokens, '--authorization-mode', 'RBAC', '--service-cluster-ip-range', '10.0.0.0/24'],
      ...['--service-account-key-file', key, '--service-account-signing-key-file', key],
      ...['--service-account-issuer', 'https://kubernetes.default.svc', '--allow-privileged=true'],
    ]);
    await ready(url, certificate, programs, interrupted);
    const kubeconfig = join(folder, 'kubeconfig');
    await writeFile(kubeconfig, kubeconfigText(url, certificate));
    await start('kube-controller-manager', controllerManager, [
      ...['--kubeconfig', kubeconfig, '--service-account-private-key-file', key, '--root-ca-file', certificate],
      ...['--controllers', '*,-nodeipam,-nodelifecycle,-cloud-node-lifecycle,-route,-service'],
      ...['--use-service-account-credentials=false', '--port', '0', '--secure-port', '0', '--leader-elect=false'],
    ]);
    return { url, kubeconfig, ca: await readFile(certificate, 'utf8'), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function ready(
  url: string,
  certificate: string,
  programs: readonly Program[],
  interrupted: AbortSignal,
): Promise<void> {
  const end = systemClock.monotonic() + READY_TIMEOUT_MS;
  for (;;) {
    const ended = programs.find(({ exit }) => exit !== undefined);
    if (ended !== undefined) throw new Error(`${ended.name} has ended; see its log in the folder of the control plane`);
    if (existsSync(certificate) && (await isReady(url, await readFile(certificate)))) return;
    if (systemClock.monotonic() > end) throw new Error(`kube-apiserver is not ready after ${READY_TIMEOUT_MS} ms`);
    await sleep(systemClock, POLL_INTERVAL_MS, interrupted);
  }
}

function isReady(url: string, ca: Buffer): Promise<boolean> {
  return new Promise((resolve) => {
    const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
    const call = request(`${url}/readyz`, { ca, headers }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    call.once('error', () => resolve(false));
    call.end();
  });
}

function kubeconfigText(server: string, certificate: string): string {
  const users = { admin: ADMIN_TOKEN, limited: LIMITED_TOKEN };
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'local', cluster: { server, 'certificate-authority': certificate } }],
    users: Object.entries(users).map(([name, token]) => ({ name, user: { token } })),
    contexts: Object.keys(users).map((name) => ({ name, context: { cluster: 'local', user: name } })),
    'current-context': 'admin',
  });
}
