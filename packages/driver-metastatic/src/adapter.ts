/** The slots of backing nodes as a cloud of the state-machine framework. */

import {
  DriverError,
  NotFoundError,
  QuotaInformation,
  type Adapter,
  type BackingNodes,
  type Call,
  type CreateRequest,
  type ExternalId,
  type Instance,
  type JsonValue,
  type PoolConfig,
  type ProviderContext,
  type Resource,
  type StateMachine,
} from '@nodepool/core';
import type { MetastaticLabel, MetastaticProvider } from './config.js';
import { CreateMachine } from './create-machine.js';
import { DeleteMachine } from './delete-machine.js';
import { instanceOf, lostInstances } from './instance.js';
import { SlotAllocator } from './slot-allocator.js';
import type { Backing } from './slots.js';

/** A metastatic node counts as one instance; its backing node counts in its own provider. */
const NEED = QuotaInformation.use({ instances: 1 });

interface Session {
  readonly context: ProviderContext;
  readonly backing: BackingNodes;
  readonly allocator: SlotAllocator;
}

export class MetastaticAdapter implements Adapter<MetastaticLabel> {
  /** A listing reads only the records that this process has. */
  readonly listIntervalMs = 100;
  private session: Session | undefined;

  constructor(private readonly config: MetastaticProvider) {}

  async start(context: ProviderContext): Promise<void> {
    const { name, backing: settings, launchRetries: maxAttempts } = this.config;
    const owner = `NodePool:metastatic:${name}`;
    const backing = context.backingNodes?.(owner);
    // A builder or the command line launches no nodes.
    if (backing === undefined) return;
    await this.stop();
    const allocator = new SlotAllocator({ context, backing, owner, settings, maxAttempts });
    this.session = { context, backing, allocator };
  }

  async stop(): Promise<void> {
    await this.session?.allocator.stop();
  }

  getCreateStateMachine(request: CreateRequest<MetastaticLabel>, saved: JsonValue): StateMachine {
    const { allocator, context } = this.started();
    const { label, tags } = request;
    return new CreateMachine(allocator, {
      provider: this.config.name,
      label: label.name,
      use: {
        node: tags.nodepool_node_id,
        attempt: tags.nodepool_launch_attempt,
        pool: tags.nodepool_pool_name,
        installation: tags.nodepool_installation,
      },
      scan: label.checksLogin ? context.loginScan : undefined,
      scanTimeoutMs: this.config.bootTimeoutMs,
      monotonic: () => context.clock.monotonic(),
      saved,
    });
  }

  getDeleteStateMachine(externalId: ExternalId): StateMachine {
    return new DeleteMachine(this.started().allocator, externalId);
  }

  async listInstances(call: Call): Promise<readonly Instance[]> {
    if (this.session === undefined) return [];
    const { backing, allocator } = this.session;
    const { name } = this.config;
    await backing.refresh(call);
    const backings = allocator.backings();
    const placed = backings.flatMap((each) => [...each.used].map(([slot, use]) => instanceOf(name, each, slot, use)));
    return [...placed, ...lostInstances(name, backing.users(), backings)];
  }

  /** Returns nothing: the allocator frees slots whose nodes do not exist, and releases backing nodes. */
  listResources(): Promise<readonly Resource[]> {
    return Promise.resolve([]);
  }

  /** Rejects: there are no leaked resources. */
  deleteResource({ name }: Resource): Promise<void> {
    return Promise.reject(new NotFoundError(`${name} is not a resource of this driver`));
  }

  getQuotaForLabel(): Promise<QuotaInformation> {
    return Promise.resolve(NEED);
  }

  shortage({ labels }: PoolConfig<MetastaticLabel>, wanted: readonly string[]): string | undefined {
    if (this.session === undefined) return undefined;
    const { backing, allocator } = this.session;
    const counts = new Map<string, number>();
    for (const name of wanted) counts.set(name, (counts.get(name) ?? 0) + 1);
    const needed = new Map<string, number>();
    for (const [name, count] of counts) {
      const { backingLabel = '', slots = 1 } = labels.get(name) ?? {};
      needed.set(backingLabel, (needed.get(backingLabel) ?? 0) + Math.ceil(count / slots));
    }
    for (const [label, count] of needed) {
      const limit = backing.capacityOf(label);
      if (count <= limit) continue;
      // The limit may be lower than the number of present nodes.
      const isPresent = ({ data }: Backing): boolean => this.config.backing.get(data.label)?.backingLabel === label;
      const capacity = Math.max(limit, allocator.backings().filter(isPresent).length);
      if (count > capacity) return `it needs ${count} nodes of label ${label}, whose pools have at most ${capacity}`;
    }
    return undefined;
  }

  private started(): Session {
    if (this.session !== undefined) return this.session;
    throw new DriverError('unexpected', `provider ${this.config.name} was not started`, { outcome: 'not-applied' });
  }
}
