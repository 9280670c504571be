/**
 * Launchers serve 200 requests for pods and namespaces and are killed 20 times meanwhile. `kubectl` then confirms that
 * no namespace is left, and that an issued token has no right outside of its namespace.
 */

import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { isJsonObject, objectAt, sleep, stringAt, systemClock, type JsonObject } from '@nodepool/core';
import { freePorts, startZooKeeper } from '@nodepool/dev-zookeeper';
import {
  labelsOffered,
  noNodesLeft,
  registeredPools,
  startLauncher,
  startRequestor,
  type Program,
} from '@nodepool/harness';
import { connect } from '@nodepool/zookeeper';
import type { ControlPlane } from './control-plane.js';

const NODES = 200;
const KILLS = 20;
const LABELS = ['pod', 'space'];
const SESSION_TIMEOUT_S = 4;
const DEADLINE_MS = 1_200_000;
/** Time from a kill to the next one (ms). */
const LIFE_MS = 3000;
const LOOK_EVERY_MS = 500;

/** Resolves with the problems that were found. */
export async function killStorm(plane: ControlPlane, say: (line: string) => void): Promise<readonly string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'kubernetes-storm-'));
  const server = await startZooKeeper({ tickTime: 500 });
  const zooKeeper = connect({ servers: server.servers });
  const kubectl = new Kubectl(plane.kubeconfig);
  let launcher: Program | undefined;
  let requestors: readonly Program[] = [];
  const problems: string[] = [];
  let hasPassed = false;
  try {
    await zooKeeper.connected({ timeoutMs: DEADLINE_MS });
    const launch = async (name: string): Promise<Program> => {
      const before = await registeredPools(zooKeeper);
      const [port = 0] = await freePorts(1);
      const program = await startLauncher({
        name,
        folder,
        config: { ...configOf(server.servers), webapp: { port, listen_address: '127.0.0.1' } },
        env: { KUBECONFIG: plane.kubeconfig },
      });
      await program.while('offers its labels', DEADLINE_MS, (signal) =>
        labelsOffered(zooKeeper, LABELS, signal, before),
      );
      return program;
    };
    launcher = await launch('launcher-0');
    const running = await Promise.all(
      LABELS.map((label) => {
        const count = String(NODES / LABELS.length);
        const args = ['--labels', label, '--requests', count, '--parallel', '25', '--hold', '1', '--wait-deleted'];
        const timeout = ['--timeout', String(DEADLINE_MS / 1000)];
        const log = join(folder, `${label}.log`);
        const options = { deadlineMs: DEADLINE_MS };
        return startRequestor({ servers: server.servers }, log, [...args, ...timeout], options);
      }),
    );
    requestors = running.map(({ program }) => program);
    let token: JsonObject | undefined;
    for (let kill = 1; kill <= KILLS; kill += 1) {
      await sleep(systemClock, LIFE_MS);
      token ??= await kubectl.issuedToken();
      await launcher.kill();
      launcher = await launch(`launcher-${kill}`);
      if (kill % 5 === 0) say(`${kill} launchers were killed`);
    }
    if (token === undefined) problems.push('no token was seen in the cluster');
    else problems.push(...(await kubectl.rightsOutside(token, plane)));
    for (const { result } of running) {
      const { summary } = await result;
      const { outcomes } = summary as { outcomes: Record<string, number> };
      if (outcomes['fulfilled'] !== NODES / LABELS.length)
        problems.push(`requests ended as ${JSON.stringify(outcomes)}`);
    }
    await launcher.while('deletes all nodes', DEADLINE_MS, (signal) => noNodesLeft(zooKeeper, signal));
    problems.push(...(await leftovers(kubectl)));
    hasPassed = problems.length === 0;
    return problems;
  } finally {
    await launcher?.kill();
    await Promise.all(requestors.map((program) => program.kill()));
    await zooKeeper.close();
    await server.stop();
    if (hasPassed) rmSync(folder, { recursive: true, force: true });
    else say(`logs remain in ${folder}`);
  }
}

/** Leaked namespaces are deleted when two cleanup rounds have seen them. */
async function leftovers(kubectl: Kubectl): Promise<readonly string[]> {
  const end = systemClock.monotonic() + DEADLINE_MS / 4;
  for (;;) {
    const left = await kubectl.namespaces();
    if (left.length === 0) return [];
    if (systemClock.monotonic() > end) return [`these namespaces are left: ${left.join(', ')}`];
    await sleep(systemClock, LOOK_EVERY_MS);
  }
}

class Kubectl {
  constructor(private readonly kubeconfig: string) {}

  /** Returns the namespaces of the provider. */
  async namespaces(): Promise<readonly string[]> {
    const selector = ['-l', 'nodepool_provider_name=storm', '-o', 'name'];
    return (await this.run('get', 'namespaces', ...selector)).split('\n').filter((line) => line !== '');
  }

  /** Returns a secret with a token, or undefined if there is none at the moment. */
  async issuedToken(): Promise<JsonObject | undefined> {
    const selector = ['-l', 'nodepool_provider_name=storm', '-o', 'json'];
    const found: unknown = JSON.parse(await this.run('get', 'secrets', '--all-namespaces', ...selector));
    const items = isJsonObject(found) ? (found['items'] as readonly JsonObject[]) : [];
    return items.find((secret) => objectAt(secret, 'data')?.['token'] !== undefined);
  }

  /** Returns the rights of a token that it must not have, according to `kubectl auth can-i`. */
  async rightsOutside(secret: JsonObject, { url, ca }: ControlPlane): Promise<readonly string[]> {
    const folder = mkdtempSync(join(tmpdir(), 'kubernetes-token-'));
    const file = join(folder, 'kubeconfig');
    const token = Buffer.from(stringAt(objectAt(secret, 'data') ?? {}, 'token') ?? '', 'base64').toString('utf8');
    writeFileSync(
      file,
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Config',
        clusters: [
          { name: 'c', cluster: { server: url, 'certificate-authority-data': Buffer.from(ca).toString('base64') } },
        ],
        users: [{ name: 'u', user: { token } }],
        contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
        'current-context': 'x',
      }),
    );
    const asToken = new Kubectl(file);
    const wrong: string[] = [];
    const questions = [
      ['get', 'pods', '-n', 'default'],
      ['create', 'pods', '-n', 'kube-system'],
      ['get', 'secrets', '-n', 'default'],
      ['list', 'namespaces'],
      ['delete', 'namespaces'],
      ['*', '*', '--all-namespaces'],
    ];
    for (const question of questions) {
      const answer = await asToken.canI(question);
      if (answer !== 'no') wrong.push(`kubectl auth can-i ${question.join(' ')} with an issued token: ${answer}`);
    }
    rmSync(folder, { recursive: true, force: true });
    return wrong;
  }

  private async canI(question: readonly string[]): Promise<string> {
    try {
      return (await this.run('auth', 'can-i', ...question)).trim();
    } catch (error) {
      // Exit status 1 is the answer "no".
      const { stdout = '' } = error as { readonly stdout?: string };
      return stdout.trim().split('\n').at(-1) ?? '';
    }
  }

  private async run(...args: readonly string[]): Promise<string> {
    const { stdout } = await promisify(execFile)('kubectl', ['--kubeconfig', this.kubeconfig, ...args], {
      maxBuffer: 2 ** 26,
    });
    return stdout;
  }
}

function configOf(servers: string): object {
  const [host, port] = servers.split(':');
  return {
    'zookeeper-servers': [{ host, port: Number(port) }],
    'zookeeper-timeout': SESSION_TIMEOUT_S,
    drivers: [{ name: 'kubernetes', package: dirname(require.resolve('@nodepool/driver-kubernetes/package.json')) }],
    labels: LABELS.map((name) => ({ name })),
    providers: [
      {
        name: 'storm',
        driver: 'kubernetes',
        context: 'admin',
        pools: [
          {
            name: 'main',
            labels: [
              { name: 'pod', type: 'pod', image: 'docker.io/fedora:28' },
              { name: 'space', type: 'namespace' },
            ],
          },
        ],
      },
    ],
  };
}
