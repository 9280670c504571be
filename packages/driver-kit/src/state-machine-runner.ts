/** Runs an adapter's state machines step by step, so that a test can stop after each step. */

import assert from 'node:assert/strict';
import type {
  Adapter,
  Advance,
  Call,
  CreateRequest,
  ExternalId,
  Instance,
  JsonValue,
  Listing,
  MachineCall,
  StateMachine,
} from '@nodepool/core';
import { ERROR_POLICIES, IndexedListing, isDriverError, silentLogger } from '@nodepool/core';
import { DEADLINE_MS, endAll, throughJson, type ProviderHarness, type TestNode } from './provider-harness.js';
import { requestFor } from './requests.js';
import { ProviderProcess } from './process.js';
import { firstLabel } from './provider-config.js';
import { watch } from './watched.js';

/** Maximum number of steps before a machine counts as stuck. */
const MAX_STEPS = 10_000;
const DEFAULT_LIST_INTERVAL_MS = 1000;

/** Creates a machine from the saved state of another one. */
export type MakeMachine = (adapter: Adapter, saved: JsonValue, externalId: ExternalId | null) => StateMachine;

/** Called for each step before its call is awaited. */
export type OnStep = (machine: StateMachine, advance: Advance, call: MachineCall) => void;

export interface DriveOptions {
  /** Number of steps after which a new process restores the machine from its saved state. Default: never. */
  readonly replaceAfter?: number;
  readonly onStep?: OnStep;
  /** If true, continues after temporary errors, and completes if the instance is not found, as deletions do. */
  readonly persists?: boolean;
}

export interface DriveResult {
  readonly machine: StateMachine;
  readonly instance: Instance | undefined;
  readonly steps: number;
}

export class StateMachineRunner {
  private adapters: { readonly adapter: Adapter; readonly process: ProviderProcess }[] = [];
  private rounds = 0;

  constructor(private readonly harness: ProviderHarness) {
    harness.atEnd(() => this.stop());
  }

  /** Starts a new process with its own adapter. */
  async start(): Promise<Adapter> {
    const { harness } = this;
    const makeAdapter = harness.able('makeAdapter');
    const process = new ProviderProcess(harness.cloud.makeDriver(), harness.cloud.section, harness.cloud.time.clock);
    const adapter = makeAdapter(process.config);
    if (adapter.start !== undefined) await harness.finish(adapter.start(process.context), 'the start of the adapter');
    this.adapters.push({ adapter, process });
    return adapter;
  }

  get adapter(): Adapter {
    const last = this.adapters.at(-1);
    if (last === undefined) throw new Error('no adapter was started in this harness');
    return last.adapter;
  }

  get process(): ProviderProcess {
    const last = this.adapters.at(-1);
    if (last === undefined) throw new Error('no adapter was started in this harness');
    return last.process;
  }

  creation(node: TestNode): MakeMachine {
    return (adapter, saved, externalId) => adapter.getCreateStateMachine(this.request(node, externalId), saved);
  }

  deletion(externalId: ExternalId): MakeMachine {
    return (adapter, saved) => adapter.getDeleteStateMachine(externalId, saved, silentLogger);
  }

  call(signal: Call['signal'] = new AbortController().signal, listing?: Listing): MachineCall {
    return { ...this.harness.call(DEADLINE_MS, signal), listing };
  }

  /** Advances a machine until it is complete. Rejects with the error that the machine throws. */
  async drive(
    make: MakeMachine,
    { replaceAfter = Infinity, onStep, persists = false }: DriveOptions = {},
  ): Promise<DriveResult> {
    let machine = make(this.adapter, null, null);
    let call = this.call();
    for (let steps = 1; steps <= MAX_STEPS; steps += 1) {
      let advance: Advance;
      try {
        advance = machine.advance(call);
      } catch (error) {
        if (!persists || !isDriverError(error)) throw error;
        if (error.code === 'not-found') return { machine, instance: undefined, steps };
        if (!ERROR_POLICIES[error.code].mayPass) throw error;
        await this.harness.pass(DEFAULT_LIST_INTERVAL_MS);
        machine = make(this.adapter, throughJson(machine.save()), machine.externalId ?? null);
        continue;
      }
      onStep?.(machine, advance, call);
      if (advance.next === 'complete') return { machine, instance: advance.instance, steps };
      if (steps === replaceAfter) {
        // Calls that the old process started may still take effect.
        if (advance.next === 'call') watch(advance.settled);
        const saved = throughJson(machine.save());
        machine = make(await this.start(), saved, machine.externalId ?? null);
        call = this.call();
        continue;
      }
      call = { ...call, listing: await this.waitFor(advance, call) };
    }
    assert.fail(`the machine is in state "${machine.state}" after ${MAX_STEPS} steps, and still not complete`);
  }

  async stop(): Promise<void> {
    await endAll(
      this.adapters.splice(0).map(({ adapter }) => async () => {
        if (adapter.stop === undefined) return;
        await this.harness.finish(Promise.resolve(adapter.stop()), 'the stop of the adapter');
      }),
    );
  }

  async list(): Promise<Listing> {
    const { harness } = this;
    const askedAt = harness.cloud.time.clock.monotonic();
    const listed = await harness.finish(this.adapter.listInstances(harness.call()), 'the list of instances');
    this.rounds += 1;
    return new IndexedListing(this.rounds, askedAt, listed);
  }

  private async waitFor(advance: Advance, call: MachineCall): Promise<Listing | undefined> {
    const { harness } = this;
    if (advance.next === 'call') await harness.ended(watch(advance.settled), 'a call of the machine');
    if (advance.next === 'delay') await harness.pass(advance.ms);
    if (advance.next !== 'listing') return call.listing;
    const listing = await this.list();
    await harness.pass(this.adapter.listIntervalMs ?? DEFAULT_LIST_INTERVAL_MS);
    return listing;
  }

  private request(node: TestNode, externalId: ExternalId | null): CreateRequest {
    const { pool, label } = firstLabel(this.process.config);
    return {
      hostname: `np${node.id}`,
      label,
      pool,
      availabilityZone: undefined,
      imageExternalId: undefined,
      tags: node.tags,
      request: requestFor(label.name),
      externalId,
    };
  }
}
