/**
 * Launchers of both implementations on one ensemble, with clouds of their own and common static machines, while they
 * are killed. `pnpm scenario:mixed` runs it if `NODEPOOL_PYTHON` names the folder of the source of the Python Nodepool.
 */

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { seededRandom } from '@nodepool/core/testing';
import { freePorts } from '@nodepool/dev-zookeeper';
import type { Program } from '@nodepool/harness';
import { sleep, systemClock } from '@nodepool/zookeeper';
import { FleetObserver } from './fleet-observer.js';
import { fakeCloud, PYTHON_SOURCE, startPythonLauncher } from './python-launcher.js';
import { Site, type LauncherSetup } from './site.js';
import { SshHost } from './ssh-hosts.js';

const REQUESTS = 450;
const TIMEOUT_MS = 3_600_000;
const SLOTS = 2;
const HOSTS = 4;
/** Limits of the time between two kills (ms). */
const PAUSE_MS = { least: 2000, most: 12_000 };
/** Greatest number of writes of one request: a few for each pool that declines, accepts or completes it. */
const MAX_WRITES = 60;

let site: Site;
let folder: string;
let hosts: readonly SshHost[];
let endpoint: string;
const pythons: Program[] = [];

(PYTHON_SOURCE === undefined ? describe.skip : describe)('a fleet of both implementations', () => {
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'nodepool-mixed-'));
    // The Python Nodepool requires TLS.
    site = await Site.start({ tls: true });
    endpoint = await site.cloud(['boot-time=[0.2,1]']);
    const [port = 0] = await freePorts(1);
    const addresses = Array.from({ length: HOSTS }, (_, index) => `127.0.0.${index + 31}`);
    hosts = await Promise.all(addresses.map((address) => SshHost.start(address, port, join(folder, address))));
  }, TIMEOUT_MS);

  afterEach(async () => {
    await Promise.all(pythons.map((python) => python.kill()));
    await site.stop();
    await Promise.all(hosts.map((host) => host.kill()));
    rmSync(folder, { recursive: true });
  }, TIMEOUT_MS);

  function rack(): object {
    const nodes = hosts.map(({ address, port, hostKey }) => ({
      ...{ name: address, 'connection-port': port, labels: ['iron'], timeout: 5, 'host-key': hostKey },
      ...{ 'max-parallel-jobs': SLOTS, username: 'zuul' },
    }));
    return { name: 'rack', driver: 'static', pools: [{ name: 'main', nodes }] };
  }

  function ours(): LauncherSetup {
    const labels = ['debian', 'fedora'].map((name) => ({ name, 'cloud-image': 'image' }));
    const pool = { name: 'main', 'max-servers': 8, 'host-key-checking': false, labels };
    const images = [{ name: 'image', username: 'zuul' }];
    return {
      sections: [{ name: 'ours', driver: 'example', endpoint, 'cloud-images': images, pools: [pool] }, rack()],
      labels: ['iron'],
    };
  }

  /** Starts a Python launcher. */
  async function python(name: string): Promise<Program> {
    const program = await startPythonLauncher({
      ...{ name, folder, logs: site.folder, zooKeeper: site.address },
      labels: ['debian', 'fedora', 'iron'],
      providers: [fakeCloud(['debian', 'fedora']), rack()],
    });
    pythons.push(program);
    return program;
  }

  it(
    `serves ${REQUESTS} requests while launchers of both are killed`,
    async () => {
      const random = seededRandom(1);
      const launchers = [await site.launcher(ours()), await site.launcher(ours())];
      const theirs = [await python('python-1'), await python('python-2')];
      const observer = new FleetObserver(site.zooKeeper);
      const shares = [['debian'], ['fedora', 'debian'], ['iron']];
      const load = ['--requests', String(REQUESTS / 3), '--parallel', '10', '--hold', '0.3', '--wait-deleted'];
      const timeout = ['--timeout', String(TIMEOUT_MS / 1000)];
      const requestors = await Promise.all(
        shares.map((labels) => site.requestor('--labels', labels.join(','), ...load, ...timeout)),
      );
      const results = Promise.all(requestors.map(({ result }) => result));
      let kills = 0;
      for (;;) {
        const pause = PAUSE_MS.least + random.next() * (PAUSE_MS.most - PAUSE_MS.least);
        const isOver = await Promise.race([results.then(() => true), sleep(systemClock, pause).then(() => false)]);
        if (isOver) break;
        const index = Math.floor(random.next() * 2);
        kills += 1;
        if (random.next() < 0.5) {
          await launchers[index]?.kill();
          launchers[index] = await site.launcher(ours());
        } else {
          await theirs[index]?.kill();
          theirs[index] = await python(`python-${index + 1}`);
        }
      }
      const ended = await results;
      const seen = await observer.stop();
      const nodes = ended.flatMap(({ reports }) => reports.flatMap((report) => report.nodes));
      const providers = ended.flatMap(({ reports }) => reports.flatMap((report) => report.providers));
      const counts = Object.fromEntries([...new Set(providers)].map((name) => [name, countOf(providers, name)]));
      const outcomes = ended.map(({ summary }) => summary?.outcomes);
      writeFileSync(join(site.folder, 'seen.json'), JSON.stringify({ ...seen, kills, counts, outcomes }, undefined, 2));

      expect(ended.map(({ summary }) => summary?.problems)).toEqual(shares.map(() => []));
      expect(new Set(nodes).size).toBe(nodes.length);
      expect(seen.reallocated).toEqual([]);
      // A Python launcher may be the second of a pair, because it decides seconds before it registers a slot.
      const own = registeredByOurs(site.folder);
      expect(seen.doubledSlots.filter((pair) => own.has(pair.split(' ')[1] ?? ''))).toEqual([]);
      expect(seen.writes.most).toBeLessThanOrEqual(MAX_WRITES);
      expect(outcomes).toEqual(shares.map(() => ({ fulfilled: REQUESTS / 3 })));
    },
    TIMEOUT_MS,
  );
});

/** Returns the ids of the static nodes that launchers of this implementation have registered, from their logs. */
function registeredByOurs(logs: string): ReadonlySet<string> {
  const files = readdirSync(logs).filter((name) => /^launcher-.*\.log$/.test(name));
  const texts = files.map((name) => readFileSync(join(logs, name), 'utf8'));
  return new Set(
    texts.flatMap((text) => [...text.matchAll(/Registered a ready node.* node_id=(\d+)/g)].map(([, id]) => id ?? '')),
  );
}

function countOf(names: readonly string[], name: string): number {
  return names.filter((each) => each === name).length;
}
