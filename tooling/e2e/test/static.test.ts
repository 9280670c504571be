/**
 * Static machines with OpenSSH's server on loopback addresses, two slots each, and two launchers. Requests are served
 * while hosts and launchers are killed, host keys change, hosts freeze and recover, and the configuration changes. No
 * slot ever has two nodes, and all slots are ready in the end. `pnpm scenario:static` runs the long version.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { seededRandom } from '@nodepool/core/testing';
import { freePorts } from '@nodepool/dev-zookeeper';
import type { Program, RunningRequestor } from '@nodepool/harness';
import { sleep, systemClock } from '@nodepool/zookeeper';
import { Site } from './site.js';
import { SlotObserver } from './slot-observer.js';
import { SshHost } from './ssh-hosts.js';

const LONG = process.env['NODEPOOL_SCENARIO'] === 'long';
const SIZE = LONG ? { hosts: 20, requests: 1000, parallel: 60 } : { hosts: 4, requests: 40, parallel: 12 };
const SLOTS = 2;
const TIMEOUT_MS = LONG ? 3_600_000 : 900_000;
const DEADLINE_MS = 300_000;
/** Maximum time between two disturbances (ms). */
const PAUSE_MS = LONG ? 1500 : 500;

let site: Site;
let hosts: SshHost[];
let folder: string;

beforeEach(async () => {
  site = await Site.start();
  folder = mkdtempSync(join(tmpdir(), 'nodepool-static-'));
  const [port = 0] = await freePorts(1);
  const addresses = Array.from({ length: SIZE.hosts }, (_, index) => `127.0.0.${index + 11}`);
  hosts = await Promise.all(addresses.map((address) => SshHost.start(address, port, join(folder, address))));
}, DEADLINE_MS);

afterEach(async () => {
  await site.stop();
  await Promise.all(hosts.map((host) => host.kill()));
  rmSync(folder, { recursive: true });
}, DEADLINE_MS);

/** Returns the configuration of a host; every second one contains its host key. */
function nodeOf(host: SshHost, index: number, more: object): object {
  const key = index % 2 === 0 ? { 'host-key': host.hostKey } : {};
  const base = { name: host.address, 'connection-port': host.port, labels: ['debian', 'fedora'], timeout: 2 };
  return { ...base, 'max-parallel-jobs': SLOTS, ...key, ...more };
}

/** Returns the provider's section; `changes` are by index of the host, with null for a removed host. */
function rack(changes: ReadonlyMap<number, object | null> = new Map(), attributes: object = {}): object {
  const nodes = hosts.flatMap((host, index) => {
    const change = changes.get(index);
    return change === null ? [] : [nodeOf(host, index, change ?? {})];
  });
  return { name: 'rack', driver: 'static', pools: [{ name: 'main', 'node-attributes': attributes, nodes }] };
}

async function untilAllReady(launcher: Program, observer: SlotObserver): Promise<void> {
  await launcher.while('registers all slots', DEADLINE_MS, async (signal) => {
    for (;;) {
      const ready = (await observer.now()).filter(({ state, allocated_to: to }) => state === 'ready' && to === null);
      if (ready.length === SIZE.hosts * SLOTS && (await observer.now()).length === ready.length) return;
      await sleep(systemClock, 100, signal);
    }
  });
}

describe('static machines', () => {
  it(
    `serve ${SIZE.requests} requests on ${SIZE.hosts} hosts with two slots each under all faults`,
    async () => {
      const random = seededRandom(1);
      const launchers = [await site.launcher({ sections: [rack()] }), await site.launcher({ sections: [rack()] })];
      const observer = new SlotObserver(site.zooKeeper);
      const firstLauncher = (): Program => launchers[0] as Program;
      await untilAllReady(firstLauncher(), observer);

      const shares = [['debian'], ['fedora'], ['debian', 'fedora'], ['debian', 'debian', 'fedora']];
      const requestors: RunningRequestor[] = [];
      for (const labels of shares) {
        const share = [
          '--requests',
          String(SIZE.requests / 4),
          '--parallel',
          String(SIZE.parallel / 4),
          '--hold',
          '0.2',
        ];
        const timeout = ['--timeout', String(TIMEOUT_MS / 1000)];
        requestors.push(await site.requestor('--labels', labels.join(','), ...share, ...timeout, '--wait-deleted'));
      }

      const served = { all: false };
      const results = Promise.all(requestors.map(({ result }) => result)).finally(() => (served.all = true));
      const chosen = <T>(items: readonly T[]): T => items[Math.floor(random.next() * items.length)] as T;
      let section = rack();
      const disturbances: Readonly<Record<string, () => Promise<void>>> = {
        kill: () => chosen(hosts).kill(),
        rekey: () => chosen(hosts).rekey(),
        freeze: async () => chosen(hosts).freeze(),
        revive: async () => {
          await Promise.all(hosts.map((host) => host.revive()));
        },
        'kill launcher': async () => {
          const index = Math.floor(random.next() * launchers.length);
          await launchers[index]?.kill();
          launchers[index] = await site.launcher({ sections: [section] });
        },
        reconfigure: async () => {
          const index = Math.floor(random.next() * hosts.length);
          const change = chosen([null, { 'max-parallel-jobs': 1 }, { username: 'ci' }, { labels: ['debian'] }, {}]);
          section = rack(new Map([[index, change]]), { round: String(random.next()) });
          for (const launcher of launchers) await site.reconfigure(launcher, { sections: [section] });
        },
      };
      const names = Object.keys(disturbances);
      for (let round = 0; !served.all || round < names.length; round += 1) {
        // Every kind once, then random ones.
        await disturbances[names[round] ?? chosen(names)]?.();
        await Promise.race([results, sleep(systemClock, random.next() * PAUSE_MS)]);
      }

      const summaries = (await results).map(({ summary }) => summary);
      expect(summaries.map((summary) => summary?.problems)).toEqual(shares.map(() => []));
      expect(summaries.map((summary) => summary?.outcomes)).toEqual(
        shares.map(() => ({ fulfilled: SIZE.requests / 4 })),
      );
      const nodes = (await results).flatMap(({ reports }) => reports.flatMap((report) => report.nodes));
      expect(new Set(nodes).size).toBe(nodes.length);

      await Promise.all(hosts.map((host) => host.revive()));
      for (const launcher of launchers) await site.reconfigure(launcher, { sections: [rack()] });
      await untilAllReady(firstLauncher(), observer);
      const slots = (await observer.now()).map(({ hostname, slot }) => `${hostname}/${slot}`).sort();
      expect(slots).toEqual(hosts.flatMap(({ address }) => [`${address}/0`, `${address}/1`]).sort());
      await observer.stop();
      expect(observer.problems).toEqual([]);
      await site.nothingLeft(firstLauncher());
    },
    TIMEOUT_MS,
  );
});
