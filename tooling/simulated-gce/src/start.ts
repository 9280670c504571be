/** Puts a simulated Google Cloud together and serves it. */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CallLog, CloudServer, CloudState, FaultPlan, type SimulatedCloudOptions } from '@nodepool/simulated-cloud';
import type { GceState } from './cloud-state.js';
import { Definitions, type Api } from './definitions.js';
import type { CallFault } from './faults.js';
import { Images, type InspectedImage } from './images.js';
import { Instances, type InspectedInstance } from './instances.js';
import { Operations } from './operations.js';
import { PublishedRoutes } from './published-routes.js';
import { routesOf } from './routes.js';
import { DEFAULT_SETTINGS, type CloudSettings } from './settings.js';
import { Buckets, type InspectedObject } from './storage.js';
import { Tokens } from './tokens.js';

/** Longest piece of an upload, bytes. */
const MAX_BODY_BYTES = 256 * 2 ** 20;

export type SimulatedGceOptions = SimulatedCloudOptions<CloudSettings>;

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
  readonly faults: FaultPlan<CallFault>;
  readonly inspect: Inspector;
  readonly calls: CallLog;
  /** Changes how the cloud behaves from now on. */
  configure(settings: Partial<CloudSettings>): void;
  /** Limits of every region, by metric, e.g. `{INSTANCES: 5}`. */
  setLimits(limits: Readonly<Record<string, number>>): void;
  /** Stops an instance, as preemption does. False: there is none. */
  stopInstance(zone: string, name: string, reason: string): boolean;
  /** Takes an instance away. False: there is none. */
  vanish(zone: string, name: string): boolean;
  /** Returns a token for a caller without a library of Google's. */
  token(): string;
  /** Credentials that were given out are refused from now on. */
  revokeTokens(): void;
  /** Ends all connections, timers and the files it made. Idempotent. */
  close(): Promise<void>;
}

let definitions: Readonly<Record<Api, Definitions>> | undefined;

/** Read once: they are large, and do not change. */
function publishedDefinitions(): Readonly<Record<Api, Definitions>> {
  definitions ??= { compute: new Definitions('compute'), storage: new Definitions('storage') };
  return definitions;
}

/** Starts one. Rejects when the port is taken. */
export async function startSimulatedGce(options: SimulatedGceOptions = {}): Promise<SimulatedGce> {
  const state: GceState = new CloudState(options, DEFAULT_SETTINGS);
  const operations = new Operations(state);
  const buckets = new Buckets(state);
  const images = new Images(state, operations, buckets);
  const instances = new Instances(state, operations, images);
  const tokens = new Tokens(state);
  const faults = new FaultPlan<CallFault>(state.random);
  const calls = new CallLog();
  const published = new PublishedRoutes(state, publishedDefinitions(), tokens);
  const server = new CloudServer({
    ...{ state, faults, calls, bodyLimit: MAX_BODY_BYTES },
    form: published.form,
    routes: published.serve(routesOf({ state, instances, images, operations, buckets })),
    describe: (call) => call,
  });
  state.url = `http://127.0.0.1:${await server.listen(options.port ?? 0)}`;
  const folder = await mkdtemp(join(tmpdir(), 'simulated-gce-'));
  const credentialsFile = join(folder, 'credentials.json');
  await writeFile(credentialsFile, JSON.stringify(tokens.credentials()));
  return {
    url: state.url,
    credentialsFile,
    faults,
    calls,
    inspect: {
      instances: () => instances.inspect(),
      images: () => images.inspect(),
      objects: () => buckets.inspect(),
      openUploads: () => buckets.openSessions(),
    },
    configure: (changes) => state.configure(changes),
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
