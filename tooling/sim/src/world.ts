/** The simulated world: one ZooKeeper, one cloud, launchers and requestors, with one clock and one seed. */

import {
  KeyScanError,
  MIN_READY_REQUESTOR,
  sleep,
  type JsonObject,
  type LogFields,
  type Logger,
  type RandomSource,
} from '@nodepool/core';
import { seededRandom, VirtualClock } from '@nodepool/core/testing';
import { ExampleCloud, type CloudSettings } from '@nodepool/driver-example';
import type { LoginScanner } from '@nodepool/launcher';
import type { JobResult } from '@nodepool/requestor';
import { SimulatedZooKeeperServer, type ServerSnapshot } from '@nodepool/zookeeper/simulated';
import { between, oneOf } from './chance.js';
import { Checker, type CheckerOptions } from './checker.js';
import { NO_CLOUD_FAULTS, type CloudFaults, type Refusal } from './cloud-view.js';
import type { DriverFaults } from './faulty-driver.js';
import { BuilderProcess, type BuilderMachine } from './images/builder-process.js';
import { BuiltImages } from './images/built-images.js';
import { LauncherProcess } from './launcher-process.js';
import { Machines } from './machines.js';
import type { Mutation } from './mutation.js';
import { SimulatedProcess } from '@nodepool/simulated-process';
import { LibraryRequestor } from './library-requestor.js';
import { SimulatedRequestor, withdrawForgotten } from './requestor.js';
import { LABELS, SITE_WITH_IMAGES, wantedReady, type Site } from './site.js';

export interface WorldOptions extends CheckerOptions {
  readonly seed: number;
  /** Constant instance limit of the cloud. Default: unlimited. */
  readonly quota?: number | undefined;
  readonly mutation?: Mutation | undefined;
  /** The cloud gives the ids of deleted instances to new ones. Default false. */
  readonly reusesIds?: boolean | undefined;
  /** Clouds only refuse creations: no node is faulty. Default false. */
  readonly onlyRefusals?: boolean | undefined;
}

/** A cloud of moderate speed without faults. */
export const CALM_CLOUD: Partial<CloudSettings> = {
  bootTimeMs: [1000, 20_000],
  deleteTimeMs: [0, 5000],
  apiLatencyMs: [5, 200],
  listLagMs: [0, 1000],
  // Small, so that listings have several pages.
  pageSize: 12,
  callsPerSecond: Infinity,
  quota: { instances: Infinity, cores: Infinity, ram: Infinity },
  zones: ['zone-1', 'zone-2'],
  faults: {
    'create-errors': 0,
    'lost-answers': 0,
    'failed-instances': 0,
    'stuck-instances': 0,
    'delete-errors': 0,
    'list-errors': 0,
    'upload-errors': 0,
    'capacity-errors': 0,
    'auth-errors': 0,
  },
};

/** A cloud that uses ids again at once. Its lists are current: an outdated one would hide who has an id. */
const CLOUD_WITH_USED_IDS: Partial<CloudSettings> = {
  ...CALM_CLOUD,
  reusesIds: true,
  listLagMs: [0, 0],
  apiLatencyMs: [1, 10],
};

const THEIR_TAGS: readonly Readonly<Record<string, string>>[] = [
  {},
  { nodepool_node_id: '0000000001', nodepool_provider_name: 'theirs', nodepool_pool_name: 'main' },
  { nodepool_provider_name: 'theirs', nodepool_build_id: 'ab', nodepool_upload_id: '0000000001' },
  // Another installation with the same provider.
  {
    nodepool_node_id: '0000000001',
    nodepool_provider_name: 'alpha',
    nodepool_pool_name: 'main',
    nodepool_installation: 'another',
    nodepool_launch_attempt: 'e'.repeat(32),
  },
];

/** Added to the seed of a run, so that images do not change the numbers that other parts draw. */
const IMAGES_SEED = 1_000_000;
const MAX_LATENCY_MS = 5;
const GREATEST_SCAN_MS = 3000;

/** Time until a dead builder is started again (ms). */
const RESTART_MS = { least: 1000, greatest: 60_000 } as const;

/** Every third requestor uses the library. */
const LIBRARY_EVERY = 3;

export class World {
  readonly clock = new VirtualClock();
  readonly server: SimulatedZooKeeperServer;
  /** The state of an ensemble that no program has used. */
  readonly empty: ServerSnapshot;
  readonly cloud: ExampleCloud;
  /** Settings of the cloud without faults. */
  readonly calm: Partial<CloudSettings>;
  readonly checker: Checker;
  /** All launchers, including killed and stopped ones. */
  launchers: LauncherProcess[] = [];
  readonly requestors: (SimulatedRequestor | LibraryRequestor)[] = [];
  /** Probability that a login never answers. */
  scanFailures = 0;
  /** Running and dead builders; a later one on the same machine replaces an earlier one. */
  builders: BuilderProcess[] = [];
  readonly images: BuiltImages;
  readonly machines = new Machines(() => this.clock.monotonic());
  readonly cloudFaults: CloudFaults & { readonly refusals: Map<string, Refusal> };
  readonly driverFaults: DriverFaults;
  /**
   * True if an older state of ZooKeeper was restored. So many instances may be leaked then that launchers leave them to
   * operators.
   */
  needsOperators = false;
  /** Weights of the tenants in a run with fair shares. */
  shares: Site['shares'];
  private readonly seeds: RandomSource;
  private readonly mutation: Mutation | undefined;

  constructor({ seed, quota, mutation, onlyRefusals = false, reusesIds = false, ...checking }: WorldOptions) {
    this.seeds = seededRandom(seed);
    this.mutation = mutation;
    const network = this.random();
    this.server = new SimulatedZooKeeperServer({
      clock: this.clock,
      latencyMs: () => Math.floor(network.next() * MAX_LATENCY_MS),
    });
    this.empty = this.server.snapshot();
    this.calm = reusesIds ? CLOUD_WITH_USED_IDS : CALM_CLOUD;
    const settings = { ...this.calm, quota: { instances: quota ?? Infinity, cores: Infinity, ram: Infinity } };
    this.cloud = new ExampleCloud({ clock: this.clock, random: this.random(), settings });
    const view = {
      cloud: this.cloud,
      now: () => this.clock.monotonic(),
      wallClock: () => this.clock.now(),
      labels: LABELS,
      onlyRefusals,
      maxServers: (provider: string, pool: string) => this.maxServers(provider, pool),
      providerInstances: () => quota,
      tenantInstances: (tenant: string) => greatest(this.sites().map(({ tenants }) => tenants[tenant])),
      wantedReady: (label: string, inUse: number) =>
        Math.max(0, ...this.sites().map((site) => wantedReady(site, label, inUse))),
      shares: () => this.shares,
      configuredAt: () => Math.max(0, ...this.launchers.map(({ configuredAt }) => configuredAt)),
      keepsProvider: (launcher: string, provider: string) =>
        this.launchers.some((each) => each.name === launcher && each.keepsProvider(provider)),
      hasMachine: (launcher: string | undefined, node: JsonObject) =>
        this.launchers.some((each) => each.name === launcher && each.hasMachine(node)),
      disturbedAt: (launcher: string) =>
        this.launchers.find(({ name }) => name === launcher)?.disturbedAt ?? this.clock.monotonic(),
      hasNoLogin: (build: string) => ['no-boot', 'no-login'].includes(this.images.kindOf(build)),
      unusableSince: (host: string) => this.machines.unusableSince(host),
      znode: (path: string) => this.checker.observed.znode(path),
    };
    this.cloudFaults = { ...NO_CLOUD_FAULTS, refusals: new Map(), random: this.random() };
    this.driverFaults = { mode: 'none', rate: 0, random: this.random() };
    this.checker = new Checker(this.server, view, checking);
    this.images = new BuiltImages(this.cloud, seededRandom(seed + IMAGES_SEED));
  }

  /** Returns a separate random source, so that parts do not affect each other's random values. */
  random(): RandomSource {
    return seededRandom(Math.floor(this.seeds.next() * 2 ** 32));
  }

  startLauncher(name: string, site: Site): LauncherProcess {
    const process = new SimulatedProcess(name, this.clock);
    const random = this.random();
    this.checker.step(`${name} is started with ${JSON.stringify(site)}`);
    const { server, cloud, cloudFaults, driverFaults, checker, mutation } = this;
    const scanner = this.scanner(process, random);
    const log = loggerOfSteps(name, checker);
    const environment = { server, cloud, cloudFaults, driverFaults, checker, random, scanner, log, mutation };
    const launcher = new LauncherProcess(process, environment, site);
    this.launchers = [...this.launchers.filter(({ process: { dead } }) => !dead), launcher];
    return launcher;
  }

  /** Starts a builder of the site with images. */
  startBuilder(machine: BuilderMachine): void {
    const process = new SimulatedProcess(machine.name, this.clock);
    const random = this.random();
    this.checker.step(`${machine.name} is started`);
    const { server, cloud, images, driverFaults, checker, mutation } = this;
    const log = loggerOfSteps(machine.name, checker);
    const onDeath = (): void => {
      this.clock.schedule(between(random, RESTART_MS.least, RESTART_MS.greatest), () => this.startBuilder(machine));
    };
    const environment = { server, cloud, images, driverFaults, checker, random, log, mutation, onDeath };
    const builder = new BuilderProcess(process, machine, environment, SITE_WITH_IMAGES);
    this.builders = [...this.builders.filter((each) => each.machine !== machine), builder];
  }

  /** Creates an instance of another owner in the same project, without tags or with those of another installation. */
  startForeignInstance(): void {
    const tags = { ...oneOf(this.random(), THEIR_TAGS), theirs: 'yes' };
    const spec = { name: 'theirs', zone: null, size: 'small', cores: null, ram: null, image: 'debian', tags };
    this.checker.step('another owner creates an instance');
    Promise.resolve()
      .then(() => this.cloud.createInstance(spec))
      .catch((error: unknown) => this.checker.step(`another owner gets no instance: ${String(error)}`));
  }

  /** `provider` is the only provider that the requestor uses, and `labels` are those that it chooses from. */
  startRequestor(provider?: string, labels?: readonly string[]): void {
    const { server, clock, checker } = this;
    const now = (): number => clock.monotonic();
    const name = `requestor-${this.requestors.length + 1}`;
    const random = this.random();
    const jobResult = (imageId: string): JobResult | undefined =>
      this.builders.length === 0 ? undefined : this.images.jobResult(imageId, random);
    const environment = { server, clock, checker, name, random, provider, labels, now, jobResult };
    // The library is too well-behaved to reveal every fault of a launcher.
    const isFree = provider === undefined && labels === undefined;
    const usesLibrary = isFree && this.requestors.length % LIBRARY_EVERY === LIBRARY_EVERY - 1;
    const requestor = usesLibrary ? new LibraryRequestor(environment) : new SimulatedRequestor(environment);
    this.requestors.push(requestor);
    // It handles its own failures; an unhandled one fails the run.
    requestor.live().catch((error: unknown) => checker.report('X', `a requestor failed: ${String(error)}`));
  }

  /** Called if ZooKeeper was restored to its state at `to`, milliseconds since the start. */
  restored(to: number): void {
    this.needsOperators = true;
    this.checker.restored();
    // A surviving session would hold its former locks again without knowing it.
    for (const { zooKeeper, process } of this.launchers) if (!process.dead) this.server.expireSession(zooKeeper);
    for (const requestor of this.requestors) requestor.restored(to);
    const known = new Set(this.requestors.map(({ request }) => request));
    const { server, clock, checker } = this;
    for (const { id, data } of checker.observed.requests.values()) {
      if (known.has(id) || data['requestor'] === MIN_READY_REQUESTOR) continue;
      withdrawForgotten({ server, clock, checker }, id).catch((error: unknown) =>
        checker.report('X', `the forgotten request ${id} could not be withdrawn: ${String(error)}`),
      );
    }
  }

  /**
   * Runs timers until the condition holds, a rule is violated, or the time limit is reached. Resolves with true if the
   * condition holds.
   */
  async until(condition: () => boolean, limitMs: number): Promise<boolean> {
    const reached = await this.clock.runUntil(() => this.checker.violation !== undefined || condition(), limitMs);
    return reached && this.checker.violation === undefined;
  }

  /** Ends all parts, so that the next run starts clean. */
  end(): void {
    this.checker.close();
    for (const { process } of [...this.launchers, ...this.builders]) process.kill();
    this.server.stop();
    this.cloud.close();
  }

  private sites(): readonly Site[] {
    return this.launchers.flatMap((launcher) => launcher.sites);
  }

  private maxServers(provider: string, pool: string): number | undefined {
    const pools = this.sites()
      .flatMap(({ providers }) => providers.filter(({ name }) => name === provider))
      .flatMap((each) => each.pools.filter(({ name }) => name === pool));
    return greatest(pools.map(({ maxServers }) => maxServers));
  }

  private scanner(process: SimulatedProcess, random: RandomSource): LoginScanner {
    return {
      scan: async ({ signal, timeoutMs, host }) => {
        const silent =
          random.next() < this.scanFailures || this.machines.isSilent(host) || this.images.hasNoLogin(host);
        await sleep(process.clock, silent ? timeoutMs : random.next() * GREATEST_SCAN_MS, signal);
        // It may have become silent meanwhile.
        if (silent || this.machines.isSilent(host)) throw new KeyScanError(`${host} did not answer`);
        return this.machines.keys(host);
      },
    };
  }
}

/** Returns undefined if there are no limits or one of them is undefined. */
function greatest(limits: readonly (number | undefined)[]): number | undefined {
  const numbers = limits.filter((limit) => limit !== undefined);
  return numbers.length < limits.length || numbers.length === 0 ? undefined : Math.max(...numbers);
}

/** Returns a logger that records each message as a step. */
export function loggerOfSteps(name: string, checker: Checker, fixed: LogFields = {}): Logger {
  const say = (message: string, fields: LogFields = {}): void => {
    const { node_id: node, node_request_id: request, error, reason } = { ...fixed, ...fields };
    const about = [node, request, reason, error].filter((part) => part !== undefined).map(String);
    checker.step(`${name} says: ${message}${about.length === 0 ? '' : ` (${about.join(', ')})`}`);
  };
  return {
    debug: () => undefined,
    info: say,
    warn: say,
    error: (message, error, fields) => say(message, { ...fields, error }),
    with: (fields) => loggerOfSteps(name, checker, { ...fixed, ...fields }),
    named: () => loggerOfSteps(name, checker, fixed),
  };
}
