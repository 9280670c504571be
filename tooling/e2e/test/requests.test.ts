/** One launcher and two requestors: the Python client that Zuul uses, and our library. Both get the same results. */

import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { conditionMet, libraryRequestorPath, type Program, type RequestorKind } from '@nodepool/harness';
import { Site } from './site.js';

const NODES = '/nodepool/nodes';
const HARNESS = dirname(dirname(libraryRequestorPath()));
/** Names of contenders in kazoo's lock recipe. */
const CONTENDER = /^[0-9a-f]{32}__lock__\d{10}$/;

let site: Site;
let launcher: Program;

beforeAll(async () => {
  // Short sessions, so that the nodes of a killed requestor are released soon.
  site = await Site.start({ maxSessionTimeout: 10_000 });
  launcher = await site.launcher({
    providers: [{ cloud: { 'boot-time': 0.1, ssh: true }, hostKeyChecking: true }, { name: 'other' }],
  });
});

afterAll(async () => {
  await site.stop();
});

async function json(path: string): Promise<Readonly<Record<string, unknown>>> {
  return JSON.parse(Buffer.from((await site.zooKeeper.get(path)).data).toString()) as Readonly<Record<string, unknown>>;
}

async function below(path: string): Promise<readonly string[]> {
  return (await site.zooKeeper.children(path)).children;
}

describe.each<[string, RequestorKind]>([
  ['the Python client', 'python'],
  ['the library', 'library'],
])('a launcher with requests from %s', (_, kind) => {
  beforeAll(() => site.askWith(kind));

  it('fulfils a request for one node, and deletes the node after its use', async () => {
    const { exitCode, summary, reports } = await site.ask(
      ...['--labels', 'debian', '--wait-deleted', '--provider', 'example'],
    );

    expect(summary).toMatchObject({ outcomes: { fulfilled: 1 }, problems: [], nodes: 1 });
    expect(reports[0]?.addresses[0]).toEqual(expect.stringMatching(/\d+\.\d+\.\d+\.\d+/));
    expect(reports[0]?.request).toMatch(/^200-\d{10}$/);
    expect(exitCode).toBe(0);
  });

  it('fulfils a request for three nodes with the labels in their order', async () => {
    const { exitCode, summary } = await site.ask('--labels', 'debian,fedora,debian', '--wait-deleted');

    expect(summary).toMatchObject({ outcomes: { fulfilled: 1 }, problems: [], nodes: 3 });
    expect(exitCode).toBe(0);
  });

  it('fulfils fifty requests, twenty at a time, without allocating a node twice', async () => {
    const { exitCode, summary, reports } = await site.ask(
      ...['--labels', 'debian', '--parallel', '20', '--requests', '50', '--wait-deleted'],
    );

    expect(summary).toMatchObject({ outcomes: { fulfilled: 50 }, problems: [], nodes: 50 });
    expect(new Set(reports.flatMap((report) => report.nodes)).size).toBe(50);
    expect(exitCode).toBe(0);
  });

  it('observes the deleted request, and its nodes locked and in use', async () => {
    const holding = await site.requestor('--labels', 'debian,fedora', '--hold', '300', '--tenant', 'tenant-one');
    await launcher.while('hands the nodes over', 120_000, (signal) =>
      conditionMet(site.zooKeeper, NODES, signal, async () => {
        const nodes = await Promise.all((await below(NODES)).map((id) => json(`${NODES}/${id}`)));
        return nodes.length === 2 && nodes.every(({ state }) => state === 'in-use');
      }),
    );

    expect(await below('/nodepool/requests')).toEqual([]);
    for (const id of await below(NODES)) {
      expect(await json(`${NODES}/${id}`)).toMatchObject({ state: 'in-use', tenant_name: 'tenant-one' });
      expect(await below(`${NODES}/${id}/lock`)).toEqual([expect.stringMatching(CONTENDER)]);
    }
    await holding.program.kill();
    await holding.result;
    await site.clean(launcher);
  });

  it('allocates nodes of the requested provider', async () => {
    const { reports, exitCode } = await site.ask('--labels', 'debian', '--provider', 'other', '--wait-deleted');

    expect(reports.map(({ providers }) => providers)).toEqual([['other']]);
    expect(exitCode).toBe(0);
  });

  it('allocates new nodes if the request refuses ready ones', async () => {
    const { exitCode, summary } = await site.ask('--labels', 'fedora', '--no-reuse', '--wait-deleted');

    expect(summary).toMatchObject({ outcomes: { fulfilled: 1 }, problems: [] });
    expect(exitCode).toBe(0);
  });

  it('fails a request for a label that no pool offers', async () => {
    const { exitCode, summary } = await site.ask('--labels', 'plan9');

    expect(summary).toMatchObject({ outcomes: { failed: 1 } });
    expect(exitCode).toBe(1);
    expect(await below('/nodepool/requests')).toEqual([]);
  });

  it('deletes the nodes of a requestor that died while they were in use', async () => {
    const dying = await site.requestor('--labels', 'debian,debian', '--die');
    await dying.result;

    expect(dying.program.exit?.signal).toBe('SIGKILL');
    await site.clean(launcher);
  });

  it('leaves no locks and no requests', async () => {
    await site.nothingLeft(launcher);
  });
});

it('the program in the README of @nodepool/requestor works', async () => {
  const readme = readFileSync(join(HARNESS, '..', '..', 'packages', 'requestor', 'README.md'), 'utf8');
  const program = /```ts\n(.*?)```/s.exec(readme)?.[1] ?? '';
  expect(program).toContain("servers: '127.0.0.1:2181'");
  // Inside a package that depends on the library, so that Node.js resolves its name.
  const folder = mkdtempSync(join(HARNESS, 'dist', 'readme-'));
  const file = join(folder, 'program.mjs');
  writeFileSync(file, program.replace('127.0.0.1:2181', site.address.servers));
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [file], { timeout: 120_000 });
    expect(stdout).toMatch(/^\d{10} zuul [\d.]+ \d+\n$/);
  } finally {
    rmSync(folder, { recursive: true });
  }
  await site.clean(launcher);
});

it('a launcher stops cleanly on a signal', async () => {
  expect(await launcher.stop()).toEqual({ code: 0, signal: null });
});
