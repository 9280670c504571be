/** The simulated world: one ZooKeeper, one cloud, launchers and requestors, all on one clock and one seed. */

import { KeyScanError, seededRandom, sleep, type LogFields, type Logger, type RandomSource } from '@nodepool/core';
import { ExampleCloud, type CloudSettings } from '@nodepool/driver-example';
import type { LoginScanner } from '@nodepool/launcher';
import { SimulatedZooKeeperServer, VirtualClock } from '@nodepool/zookeeper';
import { Checker, type CheckerOptions } from './checker.js';
import { LauncherProcess } from './launcher-process.js';
import type { Mutation } from './mutation.js';
import { SimulatedProcess } from './process.js';
import { freeIdleNodes } from './operator.js';
import { SimulatedRequestor } from './requestor.js';
import type { SiteConfig } from './site.js';

export interface WorldOptions extends CheckerOptions {
  readonly seed: number;
  readonly mutation?: Mutation | undefined;
}

/** A cloud of modest speed without faults. */
export const CALM_CLOUD: Partial<CloudSettings> = {
  bootTimeMs: [1000, 20_000],
  deleteTimeMs: [0, 5000],
  apiLatencyMs: [5, 200],
  listLagMs: [0, 1000],
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

const GREATEST_LATENCY_MS = 5;
const GREATEST_SCAN_MS = 3000;

export class World {
  readonly clock = new VirtualClock();
  readonly server: SimulatedZooKeeperServer;
  readonly cloud: ExampleCloud;
  readonly checker: Checker;
  /** Those that run, and those that were killed or stopped. */
  launchers: LauncherProcess[] = [];
  readonly requestors: SimulatedRequestor[] = [];
  /** Chance that a login never answers. */
  scanFailures = 0;
  private readonly seeds: RandomSource;
  private readonly mutation: Mutation | undefined;

  constructor({ seed, mutation, ...checking }: WorldOptions) {
    this.seeds = seededRandom(seed);
    this.mutation = mutation;
    const network = this.random();
    this.server = new SimulatedZooKeeperServer({
      clock: this.clock,
      latencyMs: () => Math.floor(network.next() * GREATEST_LATENCY_MS),
    });
    this.cloud = new ExampleCloud({ clock: this.clock, random: this.random(), settings: CALM_CLOUD });
    const sight = {
      cloud: this.cloud,
      now: () => this.clock.monotonic(),
      maxServers: (provider: string, pool: string) => this.maxServers(provider, pool),
    };
    this.checker = new Checker(this.server, sight, checking);
  }

  /** A source of its own, so that one part's use of chance does not change another's. */
  random(): RandomSource {
    return seededRandom(Math.floor(this.seeds.next() * 2 ** 32));
  }

  startLauncher(name: string, site: SiteConfig): LauncherProcess {
    const process = new SimulatedProcess(name, this.clock);
    const random = this.random();
    this.checker.step(`${name} is started for ${site.map((provider) => provider.name).join(', ')}`);
    const { server, cloud, checker, mutation } = this;
    const scanner = this.scanner(process, random);
    const log = stepLogger(name, checker);
    const launcher = new LauncherProcess(process, { server, cloud, checker, random, scanner, log, mutation }, site);
    this.launchers = [...this.launchers.filter(({ process: { dead } }) => !dead), launcher];
    return launcher;
  }

  startRequestor(): void {
    const { server, clock, checker } = this;
    const requestor = new SimulatedRequestor({ server, clock, checker, random: this.random() });
    this.requestors.push(requestor);
    // It deals with its failures itself; should it not, the run fails.
    requestor.live().catch((error: unknown) => checker.report('X', `a requestor failed: ${String(error)}`));
  }

  /** Has an operator return ready nodes that nobody uses, if requests wait. */
  startOperator(): void {
    const { server, clock, checker } = this;
    freeIdleNodes({ server, clock, checker, random: this.random() }).catch((error: unknown) =>
      checker.step(`the operator could not free nodes: ${String(error)}`),
    );
  }

  /** Runs timers until the condition holds, a rule is broken, or the time is over. False: it does not hold. */
  async until(condition: () => boolean, limitMs: number): Promise<boolean> {
    const reached = await this.clock.runUntil(() => this.checker.violation !== undefined || condition(), limitMs);
    return reached && this.checker.violation === undefined;
  }

  /** Ends everything, so that the next run finds nothing of this one. */
  end(): void {
    this.checker.close();
    for (const { process } of this.launchers) process.kill();
    this.server.stop();
    this.cloud.close();
  }

  private maxServers(provider: string, pool: string): number | undefined {
    const limits = this.launchers.flatMap((launcher) => launcher.maxServers(provider, pool) ?? []);
    return limits.length === 0 ? undefined : Math.max(...limits);
  }

  private scanner(process: SimulatedProcess, random: RandomSource): LoginScanner {
    return {
      scan: async ({ signal, timeoutMs, host }) => {
        const silent = random.next() < this.scanFailures;
        await sleep(process.clock, silent ? timeoutMs : random.next() * GREATEST_SCAN_MS, signal);
        if (silent) throw new KeyScanError(`${host} did not answer`);
        return ['ssh-ed25519 AAAA'];
      },
    };
  }
}

/** What a launcher says is a step. */
function stepLogger(name: string, checker: Checker, fixed: LogFields = {}): Logger {
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
    with: (fields) => stepLogger(name, checker, { ...fixed, ...fields }),
    named: () => stepLogger(name, checker, fixed),
  };
}
