/** A bridge process with all parts of a real one, which can be killed before and after each of its changes. */

import { silentMetrics, type Logger, type Metrics, type RandomSource } from '@nodepool/core';
import { Bridge, SERVES, type Settings } from '@nodepool/bridge-github';
import type { SimulatedGithub } from '@nodepool/simulated-github';
import { overlay, type SimulatedProcess } from '@nodepool/simulated-process';
import type { TransactionOp, ZooKeeper } from '@nodepool/zookeeper';
import type { SimulatedZooKeeperServer } from '@nodepool/zookeeper/simulated';
import type { Checker } from '../checker.js';
import { never } from '../cloud-view.js';
import type { RunnerMachines } from './runner-machines.js';

const SESSION_TIMEOUT_MS = 9000;

export interface BridgeEnvironment {
  readonly server: SimulatedZooKeeperServer;
  readonly checker: Checker;
  readonly random: RandomSource;
  readonly log: Logger;
  readonly github: SimulatedGithub;
  readonly machines: RunnerMachines;
  readonly settings: Settings;
  /** The content of files. */
  readonly files: ReadonlyMap<string, string>;
  /** Called when the bridge begins to serve a scale set. */
  readonly onServes: (bridge: BridgeProcess) => void;
}

export class BridgeProcess {
  readonly zooKeeper: ZooKeeper;
  /** Number of scale sets that it serves. */
  serves = 0;
  /** The session in which it began to serve. */
  private electedIn: bigint | undefined;
  private readonly bridge: Bridge;
  private readonly link = new AbortController();
  private stopping = false;
  /** Changes until it dies; undefined if its death is not planned. */
  private stepsToLive: number | undefined;

  constructor(
    readonly process: SimulatedProcess,
    private readonly environment: BridgeEnvironment,
  ) {
    const { server, random, log, machines, settings, files } = environment;
    const { clock, name: identifier } = process;
    this.zooKeeper = server.connect({ sessionTimeoutMs: SESSION_TIMEOUT_MS, clock, random });
    this.bridge = new Bridge({
      ...{ zooKeeper: this.watchedClient(), settings, clock, random, log, identifier, version: '0.0.0' },
      metrics: this.watchedMetrics(),
      askLauncher: () => Promise.reject(new Error('launchers have no web endpoint here')),
      processes: machines.for(this),
      fetch: (input, init) => this.fetch(input, init),
      readFile: (file) => Promise.resolve(files.get(file) ?? ''),
    });
    this.bridge.start();
  }

  get name(): string {
    return this.process.name;
  }

  /** True if it is not killed, stopped or about to be. */
  get alive(): boolean {
    return !this.process.dead && !this.stopping;
  }

  /** True if it serves a scale set, and knows of no trouble with the session in which it was elected. */
  get isServing(): boolean {
    const { session, state } = this.zooKeeper;
    const isConnected = state === 'connected' && session?.id === this.electedIn;
    return this.serves > 0 && this.alive && !this.process.paused && isConnected;
  }

  /** Stops it like an operator does. */
  async stop(): Promise<void> {
    this.stopping = true;
    await this.bridge.stop();
    await this.zooKeeper.close();
    this.process.kill();
  }

  /** Kills it. Its sockets are closed, and its session lives on until it expires. */
  kill(): void {
    this.process.kill();
    this.environment.server.partition(this.zooKeeper, 'cut');
    this.link.abort(new Error('the client was killed'));
  }

  /** Kills it before or after its `steps`th change in ZooKeeper, in GitHub or on a node from now on. */
  killAfter(steps: number): void {
    this.stepsToLive = steps;
  }

  /** Pauses it (SIGSTOP). */
  pause(): void {
    this.process.pause();
    this.environment.server.partition(this.zooKeeper, 'silent');
  }

  resume(): void {
    this.process.resume();
    this.environment.server.heal(this.zooKeeper);
  }

  /** Runs a change, and delivers its outcome. */
  async does<T>(change: () => Promise<T>): Promise<T> {
    this.atStep();
    if (this.process.dead) return never();
    const outcome = this.receives(change());
    // The effect of most changes is immediate, and the rest of the call waits for the answer.
    await Promise.resolve();
    this.atStep();
    return outcome;
  }

  /** Delivers the outcome of a call. */
  receives<T>(call: Promise<T>): Promise<T> {
    return this.process.receive(call);
  }

  private async fetch(input: string | URL | Request, init: RequestInit = {}): Promise<Response> {
    const { github } = this.environment;
    const isChange = (init.method ?? 'GET') !== 'GET';
    if (isChange) this.atStep();
    if (this.process.dead) return never();
    const signals = init.signal == null ? [this.link.signal] : [init.signal, this.link.signal];
    const answer = await this.receives(github.fetch(input, { ...init, signal: AbortSignal.any(signals) }));
    if (isChange) this.atStep();
    return this.isDead() ? never() : answer;
  }

  /** The state changes in `atStep`, which the compiler does not know. */
  private isDead(): boolean {
    return this.process.dead;
  }

  /** Called before and after each change that it makes. */
  private atStep(): void {
    if (this.stepsToLive === undefined || this.process.dead) return;
    this.stepsToLive -= 1;
    if (this.stepsToLive > 0) return;
    this.environment.checker.step(`${this.name} dies between two steps`);
    this.kill();
  }

  private watchedMetrics(): Metrics {
    return {
      ...silentMetrics,
      set: (gauge, _labels, value) => {
        if (gauge.name !== SERVES.name || value === undefined) return;
        this.serves += value === 1 ? 1 : this.serves > 0 ? -1 : 0;
        if (value !== 1) return;
        this.electedIn = this.zooKeeper.session?.id;
        this.environment.onServes(this);
      },
    };
  }

  /** Returns a client that announces its writes to the checker. The process may die before or after each of them. */
  private watchedClient(): ZooKeeper {
    const { zooKeeper, process } = this;
    const { checker } = this.environment;
    const write = async <T>(ops: readonly TransactionOp[], send: () => Promise<T>): Promise<T> => {
      this.atStep();
      if (process.dead) return never();
      checker.observed.announce(ops);
      const answer = await send();
      this.atStep();
      return this.isDead() ? never() : answer;
    };
    return overlay(zooKeeper, {
      create: (path, data, options) =>
        write([{ type: 'create', path, ...(data === undefined ? {} : { data }) }], () =>
          zooKeeper.create(path, data, options),
        ),
      set: (path, data, options) => write([{ type: 'set', path, data }], () => zooKeeper.set(path, data, options)),
      delete: (path, options) => write([{ type: 'delete', path }], () => zooKeeper.delete(path, options)),
      transaction: (ops, options) => write(ops, () => zooKeeper.transaction(ops, options)),
    });
  }
}
