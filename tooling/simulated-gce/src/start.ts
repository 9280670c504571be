/** Starts a simulated Google Cloud. */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  CallLog,
  CloudServer,
  CloudState,
  FaultPlan,
  type CloudConnections,
  type SimulatedCloudOptions,
} from '@nodepool/simulated-cloud';
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

/** Maximum size of an upload chunk in bytes. */
const MAX_BODY_BYTES = 256 * 2 ** 20;

export type SimulatedGceOptions = SimulatedCloudOptions<CloudSettings>;

/** Direct access to the cloud's content without the API. */
export interface Inspector {
  instances(): readonly InspectedInstance[];
  images(): readonly InspectedImage[];
  objects(): readonly InspectedObject[];
  /** Returns the number of uploads in progress. */
  openUploads(): number;
}

/** A running simulated Google Cloud. */
export interface SimulatedGce {
  /** URL for `api-endpoint` and `storage-endpoint`. */
  readonly url: string;
  /** Path of a credentials file for `credentials-file` or `GOOGLE_APPLICATION_CREDENTIALS`. */
  readonly credentialsFile: string;
  /** Path of a credentials file whose tokens come from the token endpoint, and are not signed by the library. */
  readonly loginFile: string;
  readonly faults: FaultPlan<CallFault>;
  readonly inspect: Inspector;
  readonly calls: CallLog;
  /** Refuses connections, and accepts them again. */
  readonly connections: CloudConnections;
  /** Changes settings from now on. */
  configure(settings: Partial<CloudSettings>): void;
  /** Sets limits of every region by metric, e.g. `{INSTANCES: 5}`. */
  setLimits(limits: Readonly<Record<string, number>>): void;
  /** Stops an instance as in a preemption. Returns false if it does not exist. */
  stopInstance(zone: string, name: string, reason: string): boolean;
  /** Removes an instance. Returns false if it does not exist. */
  removeInstance(zone: string, name: string): boolean;
  /** Acts as another person who copies resources with their labels or metadata. */
  readonly copy: {
    instance(zone: string, name: string, copy: string): void;
    image(name: string, copy: string): void;
    object(name: string, copy: string): void;
  };
  /** Marks an image, e.g. as `OBSOLETE`. */
  deprecateImage(name: string, state: string): void;
  /** Returns a token for callers without Google's libraries. */
  token(): string;
  /** Revokes the tokens of the token endpoint before their expiry. */
  revokeTokens(): void;
  /** Revokes the credentials in the files, and their tokens. */
  revokeCredentials(): void;
  /** Writes valid credentials to the files. */
  writeCredentials(): Promise<void>;
  /** Closes all connections and timers and deletes created files. Idempotent. */
  close(): Promise<void>;
}

let definitions: Readonly<Record<Api, Definitions>> | undefined;

/** The definitions are read once because they are large and constant. */
function publishedDefinitions(): Readonly<Record<Api, Definitions>> {
  definitions ??= { compute: new Definitions('compute'), storage: new Definitions('storage') };
  return definitions;
}

/** Starts a simulated Google Cloud. Rejects if the port is in use. */
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
  const loginFile = join(folder, 'login.json');
  const writeCredentials = async (): Promise<void> => {
    await writeFile(credentialsFile, JSON.stringify(tokens.credentials()));
    await writeFile(loginFile, JSON.stringify(tokens.login()));
  };
  await writeCredentials();
  return {
    url: state.url,
    credentialsFile,
    loginFile,
    faults,
    calls,
    connections: server,
    inspect: {
      instances: () => instances.inspect(),
      images: () => images.inspect(),
      objects: () => buckets.inspect(),
      openUploads: () => buckets.openSessions(),
    },
    configure: (changes) => state.configure(changes),
    setLimits: (limits) => instances.setLimits(limits),
    stopInstance: (zone, name, reason) => instances.stop(zone, name, reason),
    removeInstance: (zone, name) => instances.removeInstance(zone, name),
    copy: {
      instance: (zone, name, copy) => instances.copy(zone, name, copy),
      image: (name, copy) => images.copy(name, copy),
      object: (name, copy) => buckets.copy(name, copy),
    },
    deprecateImage: (name, state) => images.deprecate(name, state),
    token: () => tokens.issue(),
    revokeTokens: () => tokens.revokeTokens(),
    revokeCredentials: () => tokens.revokeCredentials(),
    writeCredentials,
    async close() {
      await server.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
