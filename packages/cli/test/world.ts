/** A simulated ensemble with a launcher's store and a command line that uses it. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Writable } from 'node:stream';
import { openStore, type ComponentData, type PoolComponentData, type Store, type WebEndpoint } from '@nodepool/store';
import { nodeDataWith, seededRandom, VirtualClock } from '@nodepool/core/testing';
import type {
  ImageBuild,
  ImageBuildData,
  ImageUpload,
  ImageUploadData,
  NodeData,
  NodeRequestData,
} from '@nodepool/core';
import { SimulatedZooKeeperServer } from '@nodepool/zookeeper/simulated';
import type { ZooKeeper } from '@nodepool/zookeeper';
import type { TerminalSize } from '../src/display.js';
import { run } from '../src/index.js';
import type { Terminal } from '../src/process-io.js';
import { CapturedOutput } from './console.js';

const CONFIG = `
zookeeper-servers: [{host: localhost, port: 2181}]
labels: [{name: small}]
providers: []
`;

const COMMON = { username: null, python_path: null, shell_type: null, state_time: 0 };
const BUILD: ImageBuildData = { ...COMMON, state: 'ready', builder: 'nb01', builder_id: 'b', formats: ['qcow2'] };
const UPLOAD: ImageUploadData = {
  ...COMMON,
  state: 'ready',
  external_id: 'image-1',
  external_name: 'debian-1',
  format: 'qcow2',
};

const REQUEST: NodeRequestData = {
  state: 'requested',
  state_time: 0,
  node_types: ['small'],
  nodes: [],
  declined_by: [],
  decline_reasons: {},
  reuse: true,
  requestor: 'zuul',
  requestor_data: null,
  provider: null,
  relative_priority: 0,
  event_id: null,
  created_time: null,
  tenant_name: null,
};

/** A running command line. */
export class RunningCli {
  readonly out = new CapturedOutput();
  readonly stdin = Object.assign(new PassThrough(), { isTTY: true });
  /** The pictures that a terminal has shown, if there is one. */
  readonly screens: string[] = [];
  code: number | undefined;
  private readonly interruption = new AbortController();

  constructor(world: World, args: readonly string[]) {
    const { out, clock } = this.parts(world);
    void run(['-c', world.configFile, ...args], {
      out,
      streams: {
        stdin: this.stdin,
        stdout: sink((text) => (out.printed += text)),
        stderr: sink((text) => out.noteOutput(text)),
      },
      env: world.env,
      ...(world.answer === undefined ? {} : { ask: (question) => world.ask(question) }),
      ...(world.terminal === undefined ? {} : { terminal: this.terminal(world.terminal) }),
      clock,
      random: seededRandom(7),
      interrupted: this.interruption.signal,
      connect: async () => {
        if (world.connectError !== undefined) throw world.connectError;
        const client = world.ensemble.connect({ sessionTimeoutMs: 12_000 });
        world.cliClients.push(client);
        await client.connected();
        return client;
      },
    }).then((code) => (this.code = code));
  }

  /** Interrupts the command as Ctrl-C does. */
  interrupt(): void {
    this.interruption.abort(new Error('interrupted by SIGINT'));
  }

  private terminal(size: TerminalSize): Terminal {
    return { size: () => size, redraw: (text) => void this.screens.push(text) };
  }

  private parts(world: World): { out: CapturedOutput; clock: VirtualClock } {
    return { out: this.out, clock: world.clock };
  }
}

/** A configuration with one disk image and no provider. */
export const IMAGE_CONFIG = `
zookeeper-servers: [{host: localhost, port: 2181}]
images-dir: /images
labels: []
diskimages:
  - {name: debian-12, elements: [vm]}
providers: []
`;

export class World {
  readonly clock = new VirtualClock();
  readonly server = new SimulatedZooKeeperServer({ clock: this.clock });
  /** The ensemble of the commands, `server` unless a test replaces it. */
  ensemble = this.server;
  /** The error of connections to ZooKeeper. */
  connectError: Error | undefined;
  readonly cliClients: ZooKeeper[] = [];
  /** The launcher's store. */
  readonly store: Store;
  configFile = '';
  /** Environment of the commands. */
  env: Readonly<Record<string, string>> = {};
  /** The user's typed answer; undefined if the session is not interactive. */
  answer: string | undefined;
  /** Undefined if the output is not a terminal. */
  terminal: TerminalSize | undefined;
  readonly questions: string[] = [];
  private folder = '';
  private readonly client: ZooKeeper;

  constructor() {
    this.client = this.server.connect({ sessionTimeoutMs: 12_000 });
    this.store = openStore(this.client, { clock: this.clock, random: seededRandom(1), identifier: 'launcher-1' });
  }

  async start(): Promise<void> {
    this.folder = await mkdtemp(join(tmpdir(), 'nodepool-cli-'));
    this.configFile = join(this.folder, 'nodepool.yaml');
    await this.writeConfig(CONFIG);
    this.store.start();
    await this.until(() => this.store.complete);
  }

  /** Gives the commands an ensemble that no Nodepool has used. */
  useEmptyEnsemble(): SimulatedZooKeeperServer {
    this.ensemble = new SimulatedZooKeeperServer({ clock: this.clock });
    return this.ensemble;
  }

  async writeConfig(text: string): Promise<void> {
    await writeFile(this.configFile, text);
  }

  async stop(): Promise<void> {
    this.store.close();
    await this.finish(this.client.close());
    await rm(this.folder, { recursive: true });
  }

  cli(...args: string[]): RunningCli {
    return new RunningCli(this, args);
  }

  /** Runs a command to its end, without advancing the clock. */
  async run(...args: string[]): Promise<RunningCli> {
    const running = this.cli(...args);
    await this.until(() => running.code !== undefined);
    return running;
  }

  /** Processes all events that need no time on the clock, until the condition holds. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await this.clock.advance(0);
  }

  /** Resolves with the result of a promise, processing the events that it needs. */
  async finish<T>(promise: Promise<T>): Promise<T> {
    let settled = false;
    const settle = (): void => void (settled = true);
    promise.then(settle, settle);
    await this.until(() => settled);
    return promise;
  }

  async ask(question: string): Promise<string> {
    this.questions.push(question);
    return this.answer ?? '';
  }

  /** Creates a build of the image, ready unless `change` says otherwise. */
  async build(image: string, id: string, change: Partial<ImageBuildData> = {}): Promise<ImageBuild> {
    const lock = (await this.finish(this.store.images.tryLockBuilding(image)))!;
    const handle = await this.finish(lock.create({ ...BUILD, state_time: this.seconds(), ...change }, { id }));
    await this.finish(handle.release());
    return handle.build;
  }

  /** Creates an upload of the build, ready unless `change` says otherwise. */
  async upload(build: ImageBuild, provider: string, change: Partial<ImageUploadData> = {}): Promise<ImageUpload> {
    const place = { image: build.image, build: build.id, provider };
    await this.until(() => this.store.images.build(build) !== undefined);
    const lock = (await this.finish(this.store.images.tryLockUploading(place)))!;
    const handle = await this.finish(lock.create({ ...UPLOAD, state_time: this.seconds(), ...change }));
    await this.finish(handle.release());
    return handle.upload;
  }

  private seconds(): number {
    return this.clock.now() / 1000;
  }

  async node(data: Partial<NodeData>): Promise<string> {
    const [id] = await this.finish(
      this.store.nodes.create([nodeData({ state_time: this.clock.now() / 1000, ...data })]),
    );
    return id!;
  }

  async request(data: Partial<NodeRequestData>): Promise<string> {
    const request = { ...REQUEST, state_time: this.clock.now() / 1000, ...data };
    return this.finish(this.store.requests.submit(request, { priority: 200 }));
  }

  async launcher(webapp?: WebEndpoint, change: Partial<ComponentData> = {}): Promise<void> {
    const component = { hostname: 'host', kind: 'launcher', state: 'running', version: '1', model_api: 0 } as const;
    const registered = { ...component, ...(webapp === undefined ? {} : { webapp }), ...change };
    await this.finish(this.store.components.register<ComponentData>(registered).registered());
  }

  async builder(hostname: string, version: string): Promise<void> {
    const component = { hostname, kind: 'builder', state: 'running', version, model_api: 0 } as const;
    await this.finish(this.store.components.register<ComponentData>(component).registered());
  }

  async pool(labels: readonly string[], more: Partial<PoolComponentData> = {}): Promise<void> {
    const component: PoolComponentData = {
      hostname: 'host',
      kind: 'pool',
      state: 'running',
      version: '1',
      model_api: 0,
      id: 'host-PoolWorker.cloud-main-1',
      name: 'main',
      provider_name: 'cloud',
      supported_labels: labels,
      priority: 100,
      paused: false,
      ...more,
    };
    await this.finish(this.store.components.register(component).registered());
  }

  /** Acts as a launcher: fulfils the only request with one node per label. */
  async fulfil(facts: Partial<NodeData> = {}): Promise<readonly string[]> {
    await this.until(() => this.store.requests.size === 1);
    const [entry] = this.store.requests.all();
    const nodes = entry!.request.node_types.map((label) =>
      nodeData({
        state: 'init',
        type: [label],
        provider: 'cloud',
        pool: 'main',
        allocated_to: entry!.id,
        public_ipv4: '192.0.2.9',
        ...facts,
      }),
    );
    const accepted = (await this.finish(this.store.requests.accept(entry!, { create: nodes, reuse: [] })))!;
    const handles = (await this.finish(this.store.nodes.tryLockAll(accepted.created.map((id) => ({ id })))))!;
    await this.finish(accepted.request.fulfil(handles.map((handle) => ({ handle }))));
    return accepted.created;
  }

  /** Acts as a launcher: deletes the record of a node whose instance no longer exists. */
  async remove(id: string): Promise<void> {
    await this.until(() => this.store.nodes.get(id)?.locked === false);
    const handle = (await this.finish(this.store.nodes.tryLock(id)))!;
    await this.finish(handle.remove());
  }

  /** Returns the state of a node in ZooKeeper. */
  stateOf(id: string): string | undefined {
    return this.store.nodes.get(id)?.node.state;
  }
}

function sink(write: (text: string) => void): Writable {
  return new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      write(chunk.toString());
      done();
    },
  });
}

function nodeData(facts: Partial<NodeData>): NodeData {
  return nodeDataWith({
    ...{ provider: 'cloud', pool: 'main', type: ['small'], external_id: 'server-1', public_ipv4: '192.0.2.7' },
    ...{ connection_type: 'ssh', connection_port: 22, username: 'zuul' },
    ...facts,
  });
}
