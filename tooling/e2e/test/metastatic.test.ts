/**
 * Nodes on backing nodes: static machines with OpenSSH's server on loopback addresses, divided into slots by two
 * launchers, which are killed, as are the hosts, whose keys change, too. No slot ever has two nodes, all requests are
 * fulfilled, and all machines are ready in the end. `pnpm scenario:static` runs the long version.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { seededRandom } from '@nodepool/core/testing';
import { freePorts } from '@nodepool/dev-zookeeper';
import type { Program } from '@nodepool/harness';
import { sleep, systemClock } from '@nodepool/zookeeper';
import { Site, type LauncherSetup } from './site.js';
import { SlotObserver, type SlotRecord } from './slot-observer.js';
import { SshHost } from './ssh-hosts.js';

const LONG = process.env['NODEPOOL_SCENARIO'] === 'long';
const SIZE = LONG
  ? { hosts: 20, slots: 8, requests: 2000, parallel: 160 }
  : { hosts: 4, slots: 4, requests: 60, parallel: 16 };
const TIMEOUT_MS = LONG ? 3_600_000 : 900_000;
const DEADLINE_MS = 300_000;
/** Maximum time between two disturbances (ms). */
const PAUSE_MS = LONG ? 3000 : 1000;

let site: Site;
let hosts: SshHost[];
let folder: string;

beforeEach(async () => {
  site = await Site.start();
  folder = mkdtempSync(join(tmpdir(), 'nodepool-metastatic-'));
  const [port = 0] = await freePorts(1);
  const addresses = Array.from({ length: SIZE.hosts }, (_, index) => `127.0.0.${index + 51}`);
  hosts = await Promise.all(addresses.map((address) => SshHost.start(address, port, join(folder, address))));
}, DEADLINE_MS);

afterEach(async () => {
  await site.stop();
  await Promise.all(hosts.map((host) => host.kill()));
  rmSync(folder, { recursive: true });
}, DEADLINE_MS);

/** Returns providers with the machines, and with their slots. */
function setup(): LauncherSetup {
  const nodes = hosts.map(({ address, port, hostKey }) => ({
    ...{ name: address, 'connection-port': port, labels: ['large'], timeout: 2, 'host-key': hostKey },
  }));
  const slots = { 'backing-label': 'large', 'max-parallel-jobs': SIZE.slots, 'grace-time': 2 };
  const labels = ['debian', 'fedora'].map((name) => ({ name, ...slots }));
  return {
    sections: [
      { name: 'rack', driver: 'static', pools: [{ name: 'main', nodes }] },
      {
        ...{ name: 'meta', driver: 'metastatic', 'boot-timeout': 5 },
        pools: [{ name: 'main', 'host-key-checking': true, labels }],
      },
    ],
    labels: ['large'],
  };
}

function slotOf({ provider, driver_data: data }: SlotRecord): string | undefined {
  if (provider !== 'meta' || data?.backing_node === undefined) return undefined;
  return `slot ${data.slot ?? 'nothing'} of ${data.backing_node}`;
}

/** Resolves once every machine is ready, and nothing else is left. */
async function untilAllReady(launcher: Program, observer: SlotObserver): Promise<void> {
  await launcher.while('releases all machines', DEADLINE_MS, async (signal) => {
    for (;;) {
      const records = await observer.now();
      const ready = records.filter(({ state, allocated_to: to }) => state === 'ready' && to === null);
      if (ready.length === SIZE.hosts && records.length === ready.length) return;
      await sleep(systemClock, 100, signal);
    }
  });
}

describe('nodes on backing nodes', () => {
  it(
    `serve ${SIZE.requests} requests on ${SIZE.hosts} hosts with ${SIZE.slots} slots each while launchers and hosts die`,
    async () => {
      const random = seededRandom(1);
      const launchers = [await site.launcher(setup()), await site.launcher(setup())];
      const machines = new SlotObserver(site.zooKeeper, ({ provider, hostname }) =>
        provider === 'rack' ? hostname : undefined,
      );
      const observer = new SlotObserver(site.zooKeeper, slotOf);
      const shares = [['debian'], ['fedora'], ['debian', 'debian']];
      const load = ['--requests', String(Math.ceil(SIZE.requests / shares.length))];
      const more = ['--parallel', String(Math.floor(SIZE.parallel / 4)), '--hold', '0.2', '--wait-deleted'];
      const timeout = ['--timeout', String(TIMEOUT_MS / 1000)];
      const requestors = await Promise.all(
        shares.map((labels) => site.requestor('--labels', labels.join(','), ...load, ...more, ...timeout)),
      );
      const served = { all: false };
      const results = Promise.all(requestors.map(({ result }) => result)).finally(() => (served.all = true));
      const chosen = <T>(items: readonly T[]): T => items[Math.floor(random.next() * items.length)] as T;
      const disturbances: Readonly<Record<string, () => Promise<void>>> = {
        'kill launcher': async () => {
          const index = Math.floor(random.next() * launchers.length);
          await launchers[index]?.kill();
          launchers[index] = await site.launcher(setup());
        },
        kill: () => chosen(hosts).kill(),
        rekey: () => chosen(hosts).rekey(),
        revive: async () => {
          await Promise.all(hosts.map((host) => host.revive()));
        },
      };
      const names = Object.keys(disturbances);
      for (let round = 0; !served.all || round < names.length; round += 1) {
        await disturbances[names[round % names.length] ?? '']?.();
        await Promise.race([results, sleep(systemClock, random.next() * PAUSE_MS)]);
      }

      const ended = await results;
      expect(ended.map(({ summary }) => summary?.problems)).toEqual(shares.map(() => []));
      expect(ended.map(({ summary }) => Object.keys(summary?.outcomes ?? {}))).toEqual(shares.map(() => ['fulfilled']));
      const nodes = ended.flatMap(({ reports }) => reports.flatMap((report) => report.nodes));
      expect(new Set(nodes).size).toBe(nodes.length);

      await Promise.all(hosts.map((host) => host.revive()));
      await untilAllReady(launchers[0] as Program, machines);
      await Promise.all([observer.stop(), machines.stop()]);
      expect(observer.problems).toEqual([]);
      expect(await observer.now()).toEqual([]);
      await site.nothingLeft(launchers[0] as Program);
    },
    TIMEOUT_MS,
  );
});
