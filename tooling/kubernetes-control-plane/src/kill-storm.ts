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
const POLL_INTERVAL_MS = 500;

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
    let rights: readonly string[] | undefined;
    for (let kill = 1; kill <= KILLS; kill += 1) {
      await sleep(systemClock, LIFE_MS);
      rights ??= await kubectl.wrongRights(plane);
      await launcher.kill();
      launcher = await launch(`launcher-${kill}`);
      if (kill % 5 === 0) say(`${kill} launchers were killed`);
    }
    problems.push(...(rights ?? ['kubectl has not answered for any issued token']));
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
    await sleep(systemClock, POLL_INTERVAL_MS);
  }
}

class Kubectl {
  constructor(private readonly kubeconfig: string) {}

  /** Returns the namespaces of the provider. */
  async namespaces(): Promise<readonly string[]> {
    const selector = ['-l', 'nodepool_provider_name=storm', '-o', 'name'];
    return (await this.run('get', 'namespaces', ...selector)).split('\n').filter((line) => line !== '');
  }

  /**
   * Returns the rights of an issued token that differ from those of its namespace, according to `kubectl auth can-i`.
   * Returns undefined if there is no token at the moment, or if its namespace was deleted meanwhile.
   */
  async wrongRights({ url, ca }: ControlPlane): Promise<readonly string[] | undefined> {
    const secret = await this.issuedToken();
    if (secret === undefined) return undefined;
    const namespace = stringAt(objectAt(secret, 'metadata') ?? {}, 'namespace') ?? '';
    const token = Buffer.from(stringAt(objectAt(secret, 'data') ?? {}, 'token') ?? '', 'base64').toString('utf8');
    const folder = mkdtempSync(join(tmpdir(), 'kubernetes-token-'));
    try {
      const file = join(folder, 'kubeconfig');
      writeFileSync(file, kubeconfigOf(url, ca, token));
      const asToken = new Kubectl(file);
      const questions: readonly (readonly [question: readonly string[], expected: string])[] = [
        [['get', 'pods', '-n', namespace], 'yes'],
        [['get', 'pods', '-n', 'default'], 'no'],
        [['create', 'pods', '-n', 'kube-system'], 'no'],
        [['get', 'secrets', '-n', 'default'], 'no'],
        [['list', 'namespaces'], 'no'],
        [['delete', 'namespaces'], 'no'],
        [['*', '*', '--all-namespaces'], 'no'],
      ];
      const answers = await Promise.all(questions.map(([question]) => asToken.canI(question)));
      if (answers.includes(undefined)) return undefined;
      return questions.flatMap(([question, expected], index) =>
        answers[index] === expected ? [] : [`kubectl auth can-i ${question.join(' ')}: ${answers[index]}`],
      );
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }

  /** Returns a secret with a token, or undefined if there is none. */
  private async issuedToken(): Promise<JsonObject | undefined> {
    const selector = ['-l', 'nodepool_provider_name=storm', '-o', 'json'];
    const found: unknown = JSON.parse(await this.run('get', 'secrets', '--all-namespaces', ...selector));
    const items = isJsonObject(found) ? (found['items'] as readonly JsonObject[]) : [];
    // The newest token belongs to the namespace that exists longest from now on.
    return items.filter((secret) => objectAt(secret, 'data')?.['token'] !== undefined).at(-1);
  }

  /** Returns `yes` or `no`; undefined if the token is no longer valid. */
  private async canI(question: readonly string[]): Promise<string | undefined> {
    const answer = await this.run('auth', 'can-i', ...question).catch((error: unknown) => {
      // Exit status 1 is the answer "no", or an error without an answer.
      return (error as { readonly stdout?: string }).stdout ?? '';
    });
    return /^(yes|no)\b/m.exec(answer)?.[1];
  }

  private async run(...args: readonly string[]): Promise<string> {
    const { stdout } = await promisify(execFile)('kubectl', ['--kubeconfig', this.kubeconfig, ...args], {
      maxBuffer: 2 ** 26,
    });
    return stdout;
  }
}

function kubeconfigOf(server: string, ca: string, token: string): string {
  const authority = { 'certificate-authority-data': Buffer.from(ca).toString('base64') };
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server, ...authority } }],
    users: [{ name: 'u', user: { token } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  });
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
