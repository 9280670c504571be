/**
 * Nodes as bridges reach them over ssh: each can run one runner, which survives its connection and its bridge, until
 * the node is deleted.
 */

import { sleep, untilAborted, type RandomSource } from '@nodepool/core';
import type { RunnerEnd, RunnerEvents, RunnerProcess, RunnerProcesses, StartSettings } from '@nodepool/bridge-github';
import type { InProcessRunner, SimulatedGithub } from '@nodepool/simulated-github';
import type { SimulatedProcess } from '@nodepool/simulated-process';
import { between } from '../chance.js';

/** Duration of a login (ms). */
const LOGIN_MS = { least: 20, greatest: 400 } as const;

/** The bridge that uses a node: it can be killed before and after each change, and while it waits for an answer. */
interface UsingBridge {
  readonly process: SimulatedProcess;
  does<T>(change: () => Promise<T>): Promise<T>;
  receives<T>(call: Promise<T>): Promise<T>;
}

interface Machine {
  readonly runner: string;
  readonly process: InProcessRunner;
  /** Resolves with the end of the process as the node shows it. */
  readonly ended: Promise<RunnerEnd>;
  /** Ends all ssh sessions. */
  disconnect: AbortController;
}

export interface MachinesOptions {
  readonly github: SimulatedGithub;
  readonly random: RandomSource;
  readonly report: (rule: string, what: string) => void;
  readonly step: (what: string) => void;
}

export class RunnerMachines {
  /** By node. */
  private readonly machines = new Map<string, Machine>();
  /** Every runner that was ever started, with its node. */
  private readonly started = new Map<string, string>();
  private readonly used = new Set<string>();
  /** Nodes that cannot be reached. */
  private readonly unreachable = new Set<string>();
  /** Runners that died from a fault, and not by their bridge. */
  readonly killed = new Set<string>();

  constructor(private readonly options: MachinesOptions) {}

  /** Returns the nodes with a runner. */
  running(): readonly string[] {
    return [...this.machines.keys()];
  }

  /** Ends the runner of a node as a lack of memory does. */
  kill(node: string): void {
    const machine = this.machines.get(node);
    if (machine === undefined) return;
    this.killed.add(machine.runner);
    machine.process.kill();
  }

  setReachable(node: string, isReachable: boolean): void {
    if (isReachable) this.unreachable.delete(node);
    else {
      this.unreachable.add(node);
      this.disconnect(node);
    }
  }

  reachAll(): void {
    this.unreachable.clear();
  }

  /** Ends the ssh sessions to a node. */
  disconnect(node: string): void {
    const machine = this.machines.get(node);
    if (machine === undefined) return;
    machine.disconnect.abort(new Error('the connection was lost'));
    machine.disconnect = new AbortController();
  }

  /** The node is deleted, with its runner. */
  destroyed(node: string): void {
    this.machines.get(node)?.process.kill();
    this.disconnect(node);
    this.machines.delete(node);
    this.unreachable.delete(node);
  }

  /** Returns the ssh client of a bridge. */
  for(bridge: UsingBridge): RunnerProcesses {
    return { on: ({ id }) => this.process(id, bridge), close: () => undefined };
  }

  private process(node: string, bridge: UsingBridge): RunnerProcess {
    return {
      start: (settings, secret, events, signal) =>
        bridge.does(() => this.session(node, bridge, events, signal, () => this.start(node, settings, secret))),
      attach: (runner, events, signal) =>
        bridge.receives(
          this.session(node, bridge, events, signal, () =>
            this.machines.get(node)?.runner === runner ? 'there' : 'absent',
          ),
        ),
      stop: (runner) => bridge.does(() => this.stop(node, runner, bridge)),
      close: () => undefined,
    };
  }

  /** Logs in, and waits for the end of the runner or of the connection. */
  private async session(
    node: string,
    { process: { clock } }: UsingBridge,
    events: RunnerEvents,
    signal: AbortSignal,
    begin: () => 'there' | 'absent' | 'failed',
  ): Promise<RunnerEnd> {
    const { github, random } = this.options;
    await sleep(clock, between(random, LOGIN_MS.least, LOGIN_MS.greatest), signal);
    const lost = (started: boolean): RunnerEnd => ({ kind: 'unreachable', started, reason: 'no route to host' });
    if (this.unreachable.has(node)) return lost(false);
    const begun = begin();
    if (begun === 'absent') return { kind: 'absent' };
    const machine = this.machines.get(node);
    if (begun === 'failed' || machine === undefined) return { kind: 'ended', status: 1, log: 'no configuration' };
    const { disconnect } = machine;
    events.onStarted();
    await sleep(clock, between(random, LOGIN_MS.least, LOGIN_MS.greatest), signal);
    if (github.inspect.runners().some(({ name, isOnline }) => name === machine.runner && isOnline)) events.onOnline();
    try {
      const end = await untilAborted(machine.ended, AbortSignal.any([signal, disconnect.signal]));
      // Its folder is deleted with its status.
      if (end.kind === 'ended') this.machines.delete(node);
      return end;
    } catch (error) {
      if (!disconnect.signal.aborted || signal.aborted) throw error;
      return lost(true);
    }
  }

  private start(node: string, { runner }: StartSettings, secret: string): 'there' | 'failed' {
    const { github, report, step } = this.options;
    const present = this.machines.get(node);
    if (present?.runner === runner) return 'there';
    if (this.used.has(node)) report('G2', `a runner was started on node ${node} before ${runner}`);
    const elsewhere = this.started.get(runner);
    if (elsewhere !== undefined && elsewhere !== node)
      report('G2', `runner ${runner} was started on nodes ${elsewhere} and ${node}`);
    step(`runner ${runner} starts on node ${node}`);
    this.used.add(node);
    this.started.set(runner, node);
    const process = github.startRunner(secret);
    const ended = process.ended.then((end): RunnerEnd => {
      step(`runner ${runner} on node ${node}: ${end}`);
      if (end === 'killed') return { kind: 'lost' };
      return { kind: 'ended', status: end === 'exited' ? 0 : 1, log: '' };
    });
    this.machines.set(node, { runner, process, ended, disconnect: new AbortController() });
    return 'there';
  }

  private async stop(node: string, runner: string, { process: { clock } }: UsingBridge): Promise<boolean> {
    const { random, step } = this.options;
    await sleep(clock, between(random, LOGIN_MS.least, LOGIN_MS.greatest));
    const machine = this.machines.get(node);
    if (this.unreachable.has(node)) return false;
    if (machine?.runner !== runner) return true;
    step(`runner ${runner} on node ${node} is stopped`);
    machine.process.kill();
    this.machines.delete(node);
    return true;
  }
}
