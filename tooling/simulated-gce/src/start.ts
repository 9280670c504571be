/** Puts a simulated Google Cloud together and serves it. */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock, systemRandom, type Clock, type RandomSource } from '@nodepool/core';
import { Definitions } from './definitions.js';
import { FaultPlan, type CloudCall } from './faults.js';
import type { Ground } from './ground.js';
import { Images, type InspectedImage } from './images.js';
import { Instances, type InspectedInstance } from './instances.js';
import { Operations } from './operations.js';
import { routesOf } from './routes.js';
import { CloudServer } from './server.js';
import { DEFAULT_SETTINGS, type CloudSettings } from './settings.js';
import { Buckets, type InspectedObject } from './storage.js';
import { Tokens } from './tokens.js';

export interface SimulatedGceOptions {
  /** Default: the system's. Boots, operations and latency happen on it; HTTP itself takes real time. */
  readonly clock?: Clock;
  /** Ids, and faults that strike by chance. Default: the system's. */
  readonly random?: RandomSource;
  /** Port on 127.0.0.1; default: a free one. */
  readonly port?: number;
  /** Default for each: `DEFAULT_SETTINGS`. */
  readonly settings?: Partial<CloudSettings>;
}

/** What there is, without going through the API. */
export interface Inspector {
  instances(): readonly InspectedInstance[];
  images(): readonly InspectedImage[];
  objects(): readonly InspectedObject[];
  /** Uploads that were begun, and neither finished nor cancelled. */
  openUploads(): number;
}

/** A simulated Google Cloud that answers. */
export interface SimulatedGce {
  /** For `api-endpoint` and `storage-endpoint`. */
  readonly url: string;
  /** Path of a file for `credentials-file` or `GOOGLE_APPLICATION_CREDENTIALS`. */
  readonly credentialsFile: string;
  readonly faults: FaultPlan;
  readonly inspect: Inspector;
  /** How often each operation was called, e.g. `instances.insert`. */
  calls(): Readonly<Record<string, number>>;
  /** Changes how the cloud behaves from now on. */
  configure(settings: Partial<CloudSettings>): void;
  /** Limits of every region, by metric, e.g. `{INSTANCES: 5}`. */
  setLimits(limits: Readonly<Record<string, number>>): void;
  /** Stops an instance, as preemption does. False: there is none. */
  stopInstance(zone: string, name: string, reason: string): boolean;
  /** Takes an instance away. False: there is none. */
  vanish(zone: string, name: string): boolean;
  /** A token for whoever has no library of Google's. */
  token(): string;
  /** Credentials that were given out are refused from now on. */
  revokeTokens(): void;
  /** Ends all connections, timers and the files it made. Idempotent. */
  close(): Promise<void>;
}

let published: Readonly<Record<'compute' | 'storage', Definitions>> | undefined;

/** Read once: they are large, and do not change. */
function publishedDefinitions(): Readonly<Record<'compute' | 'storage', Definitions>> {
  published ??= {
    compute: new Definitions('compute'),
    storage: new Definitions('storage'),
  };
  return published;
}

/** Starts one. Rejects when the port is taken. */
export async function startSimulatedGce(options: SimulatedGceOptions = {}): Promise<SimulatedGce> {
  const { clock = systemClock, random = systemRandom } = options;
  let settings: CloudSettings = { ...DEFAULT_SETTINGS, ...options.settings };
  let url = '';
  const ground: Ground = { clock, random, settings: () => settings, url: () => url };
  const operations = new Operations(ground);
  const buckets = new Buckets(ground);
  const images = new Images(ground, operations, buckets);
  const instances = new Instances(ground, operations, images);
  const tokens = new Tokens(random, ground.url);
  const faults = new FaultPlan(random);
  const counts = new Map<string, number>();
  const server = new CloudServer({
    ground,
    routes: routesOf({ ground, instances, images, operations, buckets }),
    definitions: publishedDefinitions(),
    faults,
    tokens,
    onCall: ({ operation }: CloudCall) => counts.set(operation, (counts.get(operation) ?? 0) + 1),
  });
  url = `http://127.0.0.1:${await server.listen(options.port ?? 0)}`;
  const folder = await mkdtemp(join(tmpdir(), 'simulated-gce-'));
  const credentialsFile = join(folder, 'credentials.json');
  await writeFile(credentialsFile, JSON.stringify(tokens.credentials()));
  return {
    url,
    credentialsFile,
    faults,
    inspect: {
      instances: () => instances.inspect(),
      images: () => images.inspect(),
      objects: () => buckets.inspect(),
      openUploads: () => buckets.openSessions(),
    },
    calls: () => Object.fromEntries(counts),
    configure: (change) => {
      settings = { ...settings, ...change };
    },
    setLimits: (limits) => instances.setLimits(limits),
    stopInstance: (zone, name, reason) => instances.stop(zone, name, reason),
    vanish: (zone, name) => instances.vanish(zone, name),
    token: () => tokens.issue(),
    revokeTokens: () => tokens.revoke(),
    async close() {
      await server.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
