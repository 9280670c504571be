/** Gateways on a simulated ZooKeeper with a scripted launcher, in real time. */

import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLogger, systemClock, systemRandom, type Logger, type Metrics } from '@nodepool/core';
import { LiveSettings } from '@nodepool/daemon';
import { LeaseClient, type LeaseDocument } from '@nodepool/requestor/http';
import type { ZooKeeper } from '@nodepool/zookeeper';
import { SimulatedZooKeeperServer } from '@nodepool/zookeeper/simulated';
import { Gateway, readSettings, settingsSource, type Settings } from '../../src/index.js';
import { ScriptedLauncher } from './scripted-launcher.js';

export const TOKENS = {
  acme: 'token-of-acme-0123456789',
  other: 'token-of-other-0123456789',
  small: 'token-with-limits-0123456789',
  alone: 'token-without-tenant-0123456789',
  lonely: 'another-without-tenant-0123456789',
} as const;

const TOKEN_FILE = `
tokens:
  - {name: acme, sha256: ${hash(TOKENS.acme)}, tenant: acme, labels: ["*"]}
  - {name: other, sha256: ${hash(TOKENS.other)}, tenant: other, labels: ["*"]}
  - name: small
    sha256: ${hash(TOKENS.small)}
    tenant: small
    labels: ["debian*"]
    priorities: {min: 100, max: 300, default: 250}
    max-nodes: 3
    max-lifetime: 600
  - {name: alone, sha256: ${hash(TOKENS.alone)}, labels: [debian]}
  - {name: lonely, sha256: ${hash(TOKENS.lonely)}, labels: [debian]}
`;

const NO_METRICS: Metrics = {
  count: () => undefined,
  observe: () => undefined,
  set: () => undefined,
  onCollect: () => () => undefined,
};

export interface RunningGateway {
  readonly gateway: Gateway;
  readonly zooKeeper: ZooKeeper;
  readonly settings: LiveSettings<Settings>;
  readonly url: string;
  client(token?: string): LeaseClient;
  fetch(path: string, init?: RequestInit & { readonly token?: string | null }): Promise<Response>;
  stop(): Promise<void>;
}

export class World {
  readonly server = new SimulatedZooKeeperServer({ clock: systemClock, latencyMs: 0 });
  readonly launcher = new ScriptedLauncher(this.server.connect({ sessionTimeoutMs: 60_000 }), systemClock);
  private readonly running: RunningGateway[] = [];
  private count = 0;

  private constructor(readonly folder: string) {}

  static async start(settings = ''): Promise<World> {
    const world = new World(await mkdtemp(join(tmpdir(), 'gateway-')));
    await writeFile(join(world.folder, 'tokens.yaml'), TOKEN_FILE);
    await world.configure(settings);
    await world.launcher.start();
    return world;
  }

  get settingsFile(): string {
    return join(this.folder, 'gateway.yaml');
  }

  async configure(settings: string): Promise<void> {
    await writeFile(this.settingsFile, `listen: {port: 0}\ntokens: tokens.yaml\n${settings}`);
  }

  /** Starts a gateway. Resolves once it is ready. */
  async gateway({ log = silentLogger }: { readonly log?: Logger } = {}): Promise<RunningGateway> {
    const zooKeeper = this.server.connect({ sessionTimeoutMs: 9000 });
    const shared = { clock: systemClock, log, metrics: NO_METRICS };
    const tasks = { run: (_name: string, work: () => Promise<void>): void => void work() };
    const settings = new LiveSettings(await readSettings(this.settingsFile), {
      ...{ ...shared, ...settingsSource(this.settingsFile), tasks },
    });
    const identifier = `gateway-${++this.count}`;
    const gateway = new Gateway({ ...shared, zooKeeper, settings, random: systemRandom, identifier });
    const { port } = await gateway.start();
    const { tls } = settings.current;
    const url = `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`;
    let stopped: Promise<void> | undefined;
    const stop = async (): Promise<void> => {
      await settings.stop();
      await gateway.stop();
      await zooKeeper.close();
    };
    const running: RunningGateway = {
      ...{ gateway, zooKeeper, settings, url },
      client: (token = TOKENS.acme) => new LeaseClient({ url, token }),
      fetch: (path, { token = TOKENS.acme, headers, ...init } = {}) =>
        fetch(`${url}${path}`, {
          ...init,
          headers: { ...(token === null ? {} : { authorization: `Bearer ${token}` }), ...(headers as object) },
        }),
      stop: () => (stopped ??= stop()),
    };
    this.running.push(running);
    await until(async () => (await fetch(`${url}/ready`)).ok);
    return running;
  }

  /** Returns the paths of the server below a path. */
  paths(prefix: string): string[] {
    return [...this.server.dump().keys()].filter((path) => path.startsWith(`${prefix}/`));
  }

  contenders(): string[] {
    return [...this.server.dump().keys()].filter((path) => path.includes('__lock__'));
  }

  /** Resolves once there are no requests, nodes or locks. */
  async clean(): Promise<void> {
    await until(() =>
      Promise.resolve(
        this.paths('/nodepool/requests').length === 0 &&
          this.paths('/nodepool/nodes').length === 0 &&
          this.contenders().length === 0,
      ),
    );
  }

  async stop(): Promise<void> {
    await Promise.all(this.running.map((each) => each.stop()));
    await this.launcher.stop();
    await rm(this.folder, { recursive: true, maxRetries: 20 });
  }
}

/** Resolves once the condition holds. Rejects after a time that is never reached. */
export async function until(condition: () => Promise<boolean>): Promise<void> {
  for (const end = systemClock.monotonic() + 60_000; ;) {
    if (await condition()) return;
    if (systemClock.monotonic() > end) throw new Error('the condition does not hold');
    await new Promise<void>((resolve) => systemClock.schedule(5, resolve));
  }
}

/** Resolves with the lease once it is in the state. */
export async function inState(client: LeaseClient, id: string, state: LeaseDocument['state']): Promise<LeaseDocument> {
  for await (const lease of client.follow(id)) if (lease.state === state) return lease;
  throw new Error(`the lease ended before it was ${state}`);
}

function hash(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}
