/** The documented drill for lost, restored and exchanged data of ZooKeeper, on real servers. */

import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { freePorts, startZooKeeper, type RunningZooKeeper } from '@nodepool/dev-zookeeper';
import {
  conditionMet,
  configFileOf,
  exampleConfig,
  labelsOffered,
  Program,
  programPath,
  startLauncher,
  startRequestor,
  writeDaemonConfig,
} from '@nodepool/harness';
import { connect, sleep, systemClock, type ZooKeeper } from '@nodepool/zookeeper';

const PAGE = readFileSync(join(__dirname, '..', '..', '..', 'docs', 'operating.md'), 'utf8');
const LABELS = ['debian'] as const;
const DEADLINE_MS = 240_000;
const POLL_MS = 250;
const SUSPENSION = '/nodepool/suspensions/installation';

const MARKED = /<!-- executed by tooling\/e2e\/test\/restoring\.test\.ts -->\s+```sh\n(.*?)```/gs;
const BLOCKS = [...PAGE.matchAll(MARKED)].map(([, text = '']) => text);

/** Returns the documented commands that begin with a command. */
function documented(command: string): string {
  const found = BLOCKS.find((text) => text.trim().startsWith(`nodepool ${command}`));
  if (found === undefined) throw new Error(`operating.md has no block with the command ${command}`);
  return found;
}

describe('after ZooKeeper’s data was', () => {
  let folder: string;
  let cloud: string;
  let programs: Program[];
  let servers: RunningZooKeeper[];
  let clients: ZooKeeper[];

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'restoring-'));
    [programs, servers, clients] = [[], [], []];
    const [port = 0] = await freePorts(1);
    cloud = `http://127.0.0.1:${port}`;
    programs.push(
      await Program.start({
        name: 'cloud',
        command: process.execPath,
        args: [programPath('nodepool-example-cloud'), '--port', String(port), '--set', 'boot-time=0'],
        logFile: join(folder, 'cloud.log'),
      }),
    );
  });

  afterEach(async () => {
    await Promise.all(programs.map((program) => program.kill()));
    await Promise.all(clients.map((client) => client.close()));
    await Promise.all(servers.map((server) => server.stop()));
    rmSync(folder, { recursive: true, force: true });
  });

  /** Starts a server, whose data is in the folder `name`, and connects to it. */
  async function server(parentFolder = folder): Promise<{ server: RunningZooKeeper; client: ZooKeeper }> {
    const started = await startZooKeeper({ tickTime: 500, parentFolder });
    servers.push(started);
    const client = connect({ servers: started.servers });
    clients.push(client);
    await client.connected({ timeoutMs: DEADLINE_MS });
    return { server: started, client };
  }

  const configFor = ({ servers: address }: RunningZooKeeper, ready = 0): object =>
    exampleConfig({
      zooKeeper: { servers: address },
      sessionTimeout: 4,
      webappPort: 8005,
      labels: LABELS,
      minReady: { [LABELS[0]]: ready },
      providers: [{ endpoint: cloud }],
    });

  async function launcher(on: RunningZooKeeper, client: ZooKeeper, name: string, ready = 0): Promise<Program> {
    const started = await startLauncher({ name, folder, config: configFor(on, ready), args: ['--no-webapp'] });
    programs.push(started);
    await started.while('registers its pool', DEADLINE_MS, async (signal) => {
      await labelsOffered(client, LABELS, signal);
    });
    return started;
  }

  /** Requests nodes and takes them into use for the rest of the test. */
  async function use(on: RunningZooKeeper, client: ZooKeeper, count: number): Promise<readonly string[]> {
    const labels = Array.from({ length: count }, () => LABELS[0]).join(',');
    const args = ['--labels', labels, '--hold', '600', '--timeout', '600', '--wait-label'];
    const { program } = await startRequestor(
      { servers: on.servers },
      join(folder, `requestor-${programs.length}.log`),
      args,
    );
    programs.push(program);
    await program.while('uses its nodes', DEADLINE_MS, (signal) =>
      conditionMet(client, '/nodepool/nodes', signal, async () => {
        const { children } = await client.children('/nodepool/nodes');
        const nodes = await Promise.all(children.map((id) => nodeOf(client, id)));
        return nodes.filter(({ state }) => state === 'in-use').length >= count;
      }),
    );
    return instances();
  }

  interface Node {
    readonly state: string;
    readonly external_id: string;
    readonly allocated_to: string | null;
  }

  async function nodeOf(client: ZooKeeper, id: string): Promise<Node> {
    const { data } = await client.get(`/nodepool/nodes/${id}`);
    return JSON.parse(Buffer.from(data).toString()) as Node;
  }

  /** Resolves with true if there is a ready node that neither a request nor a launcher holds. */
  async function hasFreeNode(client: ZooKeeper): Promise<boolean> {
    const { children } = await client.children('/nodepool/nodes');
    const free = await Promise.all(
      children.map(async (id) => {
        const { state, allocated_to: request } = await nodeOf(client, id);
        const contenders = (await client.exists(`/nodepool/nodes/${id}/lock`))?.numChildren ?? 0;
        return state === 'ready' && request === null && contenders === 0;
      }),
    );
    return free.includes(true);
  }

  /** Resolves with the instances of the nodes in a state. */
  async function inState(client: ZooKeeper, state: string): Promise<readonly string[]> {
    const { children } = await client.children('/nodepool/nodes');
    const nodes = await Promise.all(children.map((id) => nodeOf(client, id)));
    return nodes.filter((node) => node.state === state).map((node) => node.external_id);
  }

  async function instances(): Promise<readonly string[]> {
    const answer = await fetch(`${cloud}/v1/instances`, { signal: AbortSignal.timeout(DEADLINE_MS) });
    const { items } = (await answer.json()) as {
      readonly items: readonly { readonly id: string; readonly state: string }[];
    };
    return items.filter(({ state }) => state !== 'deleted').map(({ id }) => id);
  }

  const installationOf = async (client: ZooKeeper): Promise<string> =>
    Buffer.from((await client.get('/nodepool/installation')).data).toString();

  async function nodepool(launcherName: string, commands: string): Promise<string> {
    const program = `'${process.execPath}' '${programPath('nodepool')}' -c '${configFileOf({ folder, name: launcherName })}'`;
    const script = commands.replaceAll(/^\s*nodepool /gm, `${program} `).replaceAll('my-cloud', 'example');
    const command = await Program.start({
      name: 'nodepool',
      command: '/bin/sh',
      args: ['-ec', script],
      logFile: join(folder, `command-${programs.length}.log`),
      cwd: folder,
    });
    programs.push(command);
    const { code } = await command.ends(DEADLINE_MS);
    expect(code === 0 ? 'it succeeds' : command.logTail()).toBe('it succeeds');
    return command.logTail();
  }

  async function until(program: Program, what: string, condition: () => Promise<boolean>): Promise<void> {
    await program.while(what, DEADLINE_MS, async (signal) => {
      while (!(await condition())) await sleep(systemClock, POLL_MS, signal);
    });
  }

  const suspended = async (client: ZooKeeper): Promise<boolean> => (await client.exists(SUSPENSION)) !== undefined;

  it('exchanged by a reload for that of an empty ensemble, instances in use survive new nodes with their ids', async () => {
    const first = await server();
    const running = await launcher(first.server, first.client, 'launcher');
    const inUse = await use(first.server, first.client, 4);
    const other = await server();
    await writeDaemonConfig({ folder, name: 'launcher', config: configFor(other.server) });
    await until(running, 'suspends deletions', () => suspended(other.client));
    await use(other.server, other.client, 2);
    expect(await instances()).toEqual(expect.arrayContaining([...inUse]));
    expect(await installationOf(other.client)).not.toBe(await installationOf(first.client));
    // The way back to the known ensemble suspends nothing.
    await writeDaemonConfig({ folder, name: 'launcher', config: configFor(first.server) });
    await use(first.server, first.client, 6);
    expect(await suspended(first.client)).toBe(false);
  });

  it('lost, instances remain until an operator deletes them', async () => {
    const first = await server();
    const running = await launcher(first.server, first.client, 'launcher');
    const inUse = await use(first.server, first.client, 3);
    const installation = await installationOf(first.client);
    await running.kill();

    const second = await server();
    await writeDaemonConfig({ folder, name: 'second', config: configFor(second.server) });
    await nodepool('second', documented('installation-id').replace('3f9c2b7a51d84e06', installation));
    const again = await launcher(second.server, second.client, 'second');
    await use(second.server, second.client, 2);
    expect(await instances()).toEqual(expect.arrayContaining([...inUse]));
    const output = await nodepool('second', documented('orphans list'));
    for (const id of inUse) expect(output).toContain(id);
    await until(again, 'has deleted the lost instances', async () => {
      const left = await instances();
      return left.length === 2 && inUse.every((id) => !left.includes(id));
    });
    await nodepool('second', documented('orphans confirm'));
    expect(await suspended(second.client)).toBe(false);
  });

  it('replaced by an older state, no ready node of it is handed out, and later instances remain until deleted', async () => {
    const parent = mkdtempSync(join(folder, 'data-'));
    const { server: zooKeeper, client } = await server(parent);
    const running = await launcher(zooKeeper, client, 'launcher', 1);
    await until(running, 'has a free ready node', () => hasFreeNode(client));
    const [ready = ''] = await inState(client, 'ready');
    await running.kill();
    await zooKeeper.kill('SIGTERM');
    cpSync(parent, `${parent}-backup`, { recursive: true });
    await zooKeeper.restart();
    const again = await launcher(zooKeeper, client, 'again', 1);
    await use(zooKeeper, client, 2);
    const used = await inState(client, 'in-use');
    expect(used).toContain(ready);
    await again.kill();

    await zooKeeper.kill('SIGTERM');
    rmSync(parent, { recursive: true });
    cpSync(`${parent}-backup`, parent, { recursive: true });
    await zooKeeper.restart();
    await nodepool('again', documented('orphans suspend'));
    const restored = await launcher(zooKeeper, client, 'restored');
    await use(zooKeeper, client, 1);
    expect(await inState(client, 'in-use')).not.toContain(ready);
    const later = used.filter((id) => id !== ready);
    expect(await instances()).toEqual(expect.arrayContaining(later));
    expect(await nodepool('restored', documented('orphans list'))).toContain(later[0]);
    await nodepool('restored', documented('orphans confirm'));
    await until(restored, 'has only the new instance', async () => (await instances()).length === 1);
  });
});
