/** A driver whose nodes are slots of backing nodes, with its fixture for the contract tests. */

import {
  loadCommonProvider,
  NotFoundError,
  parseBackingData,
  PendingCall,
  printBackingData,
  providerSchema,
  RefusedError,
  stateMachineDriver,
  type Adapter,
  type BackingNode,
  type BackingNodes,
  type Call,
  type Driver,
  type Instance,
  type JsonObject,
  type ProviderContext,
  type SlotUse,
  type StateMachine,
} from '@nodepool/core';
import { simulatedTime, SimulatedBackingNodes, type DriverFixture } from '../../src/index.js';

/** Defects, by the rule that they violate. */
export type SlotsDefect =
  | 'slot'
  | 'burst'
  | 'several-launchers'
  | 'taken-over'
  | 'failure'
  | 'refusal'
  | 'packing'
  | 'release'
  | 'lost'
  | 'orphans';

const SLOTS = 3;
const GRACE_MS = 10_000;
const OWNER = 'NodePool:acme:acme-1';
const MAX_FAILURES = 3;
const section: JsonObject = { name: 'acme-1', driver: 'acme', pools: [{ name: 'main', labels: [{ name: 'part' }] }] };
const defaults = { bootTimeoutSeconds: 5, rateUnit: 'calls-per-second' } as const;

interface Want {
  readonly use: SlotUse;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** One loop that compares the records with what launches and deletions need. */
class Slots implements Adapter {
  readonly listIntervalMs = 100;
  private readonly wants = new Map<string, Want>();
  private readonly frees = new Set<string>();
  private failures = 0;
  private requests = 0;
  private hasFreed = false;
  private running = false;
  private again = false;
  private context: ProviderContext | undefined;
  private backing: BackingNodes | undefined;
  private unsubscribe: (() => void) | undefined;

  constructor(private readonly defect: SlotsDefect | undefined) {}

  async start(context: ProviderContext): Promise<void> {
    this.context = context;
    this.backing = context.backingNodes?.(OWNER);
    this.unsubscribe = this.backing?.onChange(() => this.kick());
    this.kick();
  }

  stop(): void {
    this.unsubscribe?.();
    this.unsubscribe = undefined;
  }

  getCreateStateMachine({ tags }: Parameters<Adapter['getCreateStateMachine']>[0]): StateMachine {
    const { nodepool_node_id: node, nodepool_launch_attempt: attempt } = tags;
    const use = { node, attempt, pool: tags.nodepool_pool_name, installation: tags.nodepool_installation };
    const placing = new PendingCall<void>();
    let begun = false;
    return {
      state: 'waiting',
      externalId: undefined,
      advance: ({ signal }) => {
        if (begun && placing.underway === undefined) {
          placing.take();
          return { next: 'complete', instance: this.instanceOf(node) };
        }
        begun = true;
        return (
          placing.underway ??
          placing.start(
            new Promise((resolve, reject) => {
              this.wants.set(node, { use, resolve, reject });
              signal.addEventListener('abort', () => this.wants.delete(node));
              this.kick();
            }),
          )
        );
      },
      save: () => null,
    };
  }

  getDeleteStateMachine(externalId: unknown): StateMachine {
    let begun = false;
    return {
      state: 'freeing',
      externalId: String(externalId),
      advance: () => {
        if (begun && !this.frees.has(String(externalId))) return { next: 'complete' };
        begun = true;
        this.frees.add(String(externalId));
        this.kick();
        return { next: 'delay', ms: 50 };
      },
      save: () => null,
    };
  }

  async listInstances(call: Call): Promise<readonly Instance[]> {
    await this.backing?.refresh(call);
    return this.instances();
  }

  async listResources(): Promise<[]> {
    return [];
  }

  deleteResource(): Promise<void> {
    return Promise.reject(new NotFoundError('there are no resources'));
  }

  private instanceOf(node: string): Instance {
    const instance = this.instances().find(({ externalId }) => externalId === node);
    if (instance === undefined) throw new NotFoundError(`node ${node} has no slot`);
    if (this.defect !== 'slot') return instance;
    return { ...instance, slot: 1, driverData: { backing_node: this.held[0]?.node.id ?? '', slot: 1 } };
  }

  private get held(): readonly BackingNode[] {
    return this.backing?.held() ?? [];
  }

  private instances(): Instance[] {
    const placed = this.held.flatMap(({ node, lost }) =>
      [...(parseBackingData(node.user_data)?.used ?? [])].map(([slot, use]) => instanceOf(node, slot, use, lost)),
    );
    const known = new Set(placed.map(({ externalId }) => externalId));
    const gone = (this.backing?.users() ?? []).filter((user) => user.state === 'ready' && !known.has(user.id));
    const failed = gone.map((user) => ({
      externalId: user.id,
      ready: false,
      deleted: false,
      failed: 'its backing node is gone',
      tags: { nodepool_node_id: user.id, nodepool_provider_name: 'acme-1' },
    }));
    if (this.defect !== 'lost') return [...placed, ...failed];
    return placed.map(({ failed: _failed, ...each }) => ({ ...each, ready: true }));
  }

  private kick(): void {
    this.again = true;
    if (this.running || this.unsubscribe === undefined) return;
    this.running = true;
    this.context?.tasks.run('assign slots', async () => {
      // All changes of a moment are settled together.
      await new Promise<void>((resolve) => this.context?.clock.schedule(1, resolve));
      try {
        while (this.again && this.unsubscribe !== undefined) {
          this.again = false;
          await this.round();
        }
      } finally {
        this.running = false;
      }
    });
  }

  private async round(): Promise<void> {
    const { backing, context, defect } = this;
    if (backing === undefined || context === undefined) return;
    const call = { signal: new AbortController().signal, deadline: Infinity, log: context.log };
    for (const request of backing.requests()) {
      if (request.state !== 'fulfilled' || (defect === 'taken-over' && this.requests === 0)) continue;
      const data = { owner: OWNER, label: 'part', slots: SLOTS, failed: false, reason: null, launched: null };
      await backing.adopt(request, () => printBackingData({ ...data, idle: null, used: new Map() }), call);
    }
    const users = new Set(backing.users().map(({ id }) => id));
    const byFullness = [...this.held].sort((a, b) => usesOf(b).size - usesOf(a).size);
    if (defect === 'packing') byFullness.reverse();
    for (const held of byFullness) await this.settle(backing, held, users, call);
    for (const node of this.frees) if (!this.held.some((each) => has(each, node))) this.frees.delete(node);
    await backing.plan(() => this.plan(backing), call);
    const limit = defect === 'failure' ? 1 : MAX_FAILURES;
    if (this.failures >= limit && defect !== 'refusal') {
      this.failures = 0;
      for (const want of this.wants.values()) {
        want.reject(new RefusedError('no backing node', { outcome: 'not-applied' }));
      }
      this.wants.clear();
    }
  }

  /** Assigns and frees slots of a backing node, and releases it. */
  private async settle(
    backing: BackingNodes,
    held: BackingNode,
    users: ReadonlySet<string>,
    call: Call,
  ): Promise<void> {
    const { defect } = this;
    const data = parseBackingData(held.node.user_data);
    if (data === undefined) return;
    const isLost = held.lost !== undefined && defect !== 'lost';
    const used = new Map(data.used);
    for (const [slot, { node }] of data.used) {
      const isOrphan = !users.has(node) && !this.wants.has(node) && defect !== 'orphans';
      if (this.frees.has(node) || isOrphan) used.delete(slot);
    }
    const placed: Want[] = [];
    for (const want of isLost ? [] : this.wants.values()) {
      const slot = Array.from({ length: SLOTS }, (_, index) => index).find((index) => !used.has(index));
      if (slot === undefined) break;
      used.set(slot, want.use);
      placed.push(want);
    }
    const now = (this.context?.clock.now() ?? 0) / 1000;
    const idle = used.size === 0 ? (data.idle ?? now) : null;
    this.hasFreed ||= used.size < data.used.size;
    const text = printBackingData({ ...data, used, idle });
    if (text !== held.node.user_data && (await backing.update(held, text, call))) {
      for (const { use, resolve } of placed) {
        this.wants.delete(use.node);
        resolve();
      }
      return;
    }
    const isEarly = defect === 'release' && this.hasFreed;
    if (used.size > 0 && !isEarly) return;
    const leftMs = ((data.idle ?? now) - now) * 1000 + GRACE_MS;
    if (leftMs <= 0 || isLost || isEarly) await backing.release(held, call);
    else this.context?.clock.schedule(leftMs, () => this.kick());
  }

  private plan(backing: BackingNodes): ReturnType<Parameters<BackingNodes['plan']>[0]> {
    const { defect } = this;
    const placed = new Set(this.held.flatMap((each) => [...usesOf(each).values()].map(({ node }) => node)));
    const waiting = new Set(this.wants.keys());
    const isAlone = defect === 'several-launchers';
    for (const { id, state } of backing.users()) if (state === 'building') waiting.add(id);
    for (const id of placed) waiting.delete(id);
    const usable = this.held.filter(({ lost }) => lost === undefined || defect === 'lost');
    const free = usable.reduce((sum, each) => sum + SLOTS - usesOf(each).size, 0);
    const remove = backing.requests().filter(({ state }) => state === 'failed');
    const isOpen = ({ state }: { readonly state: string }): boolean => state !== 'failed';
    const open =
      isAlone || (defect === 'taken-over' && this.requests === 0)
        ? this.requests
        : backing.requests().filter(isOpen).length;
    const seats = defect === 'burst' ? 1 : SLOTS;
    const missing = Math.max(0, Math.ceil((waiting.size - free) / seats) - open);
    this.requests += missing;
    this.failures += remove.length;
    return {
      create: Array.from({ length: missing }, () => ({ label: 'large', data: null })),
      remove: remove.map(({ id }) => id),
    };
  }
}

function usesOf({ node }: BackingNode): ReadonlyMap<number, SlotUse> {
  return parseBackingData(node.user_data)?.used ?? new Map();
}

function has(held: BackingNode, node: string): boolean {
  return [...usesOf(held).values()].some((use) => use.node === node);
}

function instanceOf(node: BackingNode['node'], slot: number, use: SlotUse, lost: string | undefined): Instance {
  return {
    externalId: use.node,
    interfaceIp: node.interface_ip ?? undefined,
    ready: lost === undefined,
    deleted: false,
    ...(lost === undefined ? {} : { failed: lost }),
    slot,
    driverData: { backing_node: node.id, slot },
    tags: {
      nodepool_node_id: use.node,
      nodepool_provider_name: 'acme-1',
      nodepool_pool_name: use.pool ?? '',
      nodepool_installation: use.installation ?? '',
      nodepool_launch_attempt: use.attempt ?? '',
    },
  };
}

function slotsDriver(defect: SlotsDefect | undefined): Driver {
  return stateMachineDriver({
    name: 'acme',
    schema: providerSchema({ defaults }),
    getProviderConfig: (own, context) =>
      loadCommonProvider(own, context, {
        defaults,
        withoutImages: true,
        loadLabel: (label) => ({ ...label, hostKeyChecking: false }),
        loadPool: (pool) => pool,
      }),
    getAdapter: () => new Slots(defect),
  });
}

/** Returns the fixture of a correct or defective driver. Only the rules for nodes on backing nodes apply to it. */
export function slotsFixture(defect?: SlotsDefect): DriverFixture {
  return {
    name: 'acme, with slots',
    packageFolder: __dirname,
    can: [],
    backed: { slots: SLOTS, graceMs: GRACE_MS },
    configuration: { accepted: [], refused: [] },
    open: () => {
      const time = simulatedTime();
      const backing = new SimulatedBackingNodes(time.clock);
      return { time, backing, section, makeDriver: () => slotsDriver(defect), close: () => undefined };
    },
  };
}
