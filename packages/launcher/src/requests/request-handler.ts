/**
 * Serves one accepted request: launches what is missing, hands out when everything is there. Withdrawn, failed, lost or
 * stopped, it lets go of everything that it holds, each in its own way.
 */

import { setMaxListeners } from 'node:events';
import {
  ERROR_POLICIES,
  toDriverError,
  type DriverError,
  type ImageUpload,
  type LabelConfig,
  type Logger,
  type NodeData,
  type NodeRequestData,
  type NodeRequestHandler,
  type PoolConfig,
  type Provider,
  type RequestInfo,
  type NodeRequest,
} from '@nodepool/core';
import {
  LostOwnershipError,
  NODEPOOL_ROOT,
  RequestGoneError,
  type AcceptedRequest,
  type NodeEntry,
  type NodeHandle,
  type RequestHandle,
} from '@nodepool/store';
import { isZooKeeperError } from '@nodepool/zookeeper';
import type { Assignment } from './assignment.js';
import { OUTAGE_PATIENCE_MS } from '../provider/cloud-outage.js';
import type { LauncherContext } from '../context.js';
import { firstAttempt, launch } from '../launch/launches.js';
import type { RequestActivity } from '../diagnostics/activity.js';
import { lackInWords, type Lack } from '../quota/quota-scope.js';

/** A place of the request: a label, and the node that will serve it. */
export interface Slot {
  readonly label: LabelConfig;
  readonly upload: ImageUpload | undefined;
  /** The node, once we hold its record. */
  node: NodeHandle | undefined;
  /** The record of a launch to go on with. */
  readonly resume: NodeEntry | undefined;
  /** Launch, or go on with a launch. False: the node is ready. */
  readonly launch: boolean;
  /** To whom a ready node belonged before. */
  readonly owner: Pick<NodeData, 'tenant_name' | 'requestor'> | undefined;
}

/** The places of the request, those with a ready node filled. */
export function slotsOf({ parts }: Assignment, reused: readonly NodeHandle[]): Slot[] {
  const ready = reused[Symbol.iterator]();
  return parts.map((part) => ({
    label: part.label,
    upload: part.kind === 'ready' ? undefined : part.upload,
    resume: part.kind === 'resume' ? part.entry : undefined,
    node: part.kind === 'ready' ? ready.next().value : undefined,
    launch: part.kind !== 'ready',
    owner: part.kind === 'ready' ? ownerOf(part.entry) : undefined,
  }));
}

/** An earlier handler of the request may have got the node from another tenant without a confirmation: no tenant owns it. */
function ownerOf({ node: { tenant_name, requestor, allocated_to } }: NodeEntry): Slot['owner'] {
  return { tenant_name: allocated_to === null ? tenant_name : null, requestor };
}

/** What the handler needs from the pool that it works for. */
export interface HandlerPool {
  readonly provider: Provider;
  readonly config: PoolConfig;
  /** What the request becomes if this pool gives it up. */
  declined(request: NodeRequest): Partial<NodeRequestData>;
  /** The cloud said that there is no room, whatever we think. */
  outOfRoom(): void;
  /**
   * Resolves with the shortfall if the limits do not allow these records, up to the last id, and these ready nodes.
   * Nothing is begun before.
   */
  confirm(
    request: NodeRequest,
    lastId: string,
    labels: readonly string[],
    handedOver: readonly NodeHandle[],
  ): Promise<Lack | undefined>;
  /** Returns a limit that is exceeded by records up to this id, and will be until records on their way out are removed. */
  retryLack(request: NodeRequest, lastId: string, label: string): Promise<Lack | undefined>;
  /** To be called when the cloud has refused the label, confirmed by a second attempt. */
  labelRefused(label: string, zone: string | undefined, reason: string): void;
  /** True if the request can be served here all the same, in another zone. */
  canServe(request: NodeRequest): boolean;
  /** True if another pool can serve the request while the cloud of this one fails. */
  canMoveOn(request: NodeRequest): boolean;
  /** To be called when a request is left to another pool because the cloud of this one fails. */
  movedOn(failure: DriverError): void;
  /** To be called at the end of each launch attempt. */
  attempted(label: string, zone: string | undefined, failure: DriverError | undefined): void;
}

/** Somebody else was faster to take the room that we saw. */
class NoRoomError extends Error {
  constructor(
    lack: Lack,
    /** Records that were made for nothing, in these versions. */
    readonly records: readonly { readonly id: string; readonly version: number }[],
  ) {
    super(lackInWords(lack));
    this.name = 'NoRoomError';
  }
}

/** Why the work on a request ends early. */
type Ending = 'withdrawn' | 'lost' | 'stopped';

/** A request as drivers see it. */
export function requestInfo(request: NodeRequest): RequestInfo {
  return {
    id: request.id,
    labels: request.node_types,
    requestor: request.requestor,
    requestorData: request.requestor_data,
    relativePriority: request.relative_priority,
    eventId: request.event_id,
    createdTime: request.created_time,
    tenantName: request.tenant_name,
  };
}

export class RequestHandler {
  /** Aborts when the work ends early; the reason says why. */
  private readonly ending = new AbortController();
  private end: Ending | undefined;
  private lockFailure: { readonly error: unknown } | undefined;
  private launches: Promise<Partial<NodeData>>[] = [];
  /** The first whose launch failed. */
  private failedSlot: Slot | undefined;
  private handOverRefused = false;
  /** The limits allow everything that it holds. */
  private confirmed = false;
  private readonly log: Logger;

  constructor(
    private readonly context: LauncherContext,
    private readonly pool: HandlerPool,
    private readonly driverHandler: NodeRequestHandler,
    private readonly request: RequestHandle,
    private readonly slots: readonly Slot[],
  ) {
    this.log = context.log.with({
      node_request_id: request.id,
      event_id: request.request.event_id,
      provider: pool.provider.config.name,
      pool: pool.config.name,
    });
    // One listener per node is no leak.
    setMaxListeners(0, this.ending.signal);
    request.lock.lost.addEventListener('abort', () => this.finishEarly('lost'), { once: true });
    if (request.lock.lost.aborted) this.finishEarly('lost');
  }

  /** True if limits did not allow the hand-over of ready nodes; another one at the same time may have been refused for it. */
  get isHandOverRefused(): boolean {
    return this.handOverRefused;
  }

  /** The requestor has deleted the request. */
  withdrawn(): void {
    this.finishEarly('withdrawn');
  }

  /** Let go of everything; somebody else, or we with another configuration, will go on. */
  stop(): void {
    this.finishEarly('stopped');
  }

  /** What it holds, for the stack dump. */
  activity(): RequestActivity {
    const held = this.slots.flatMap(({ node, label }) => (node === undefined ? [] : [{ node, label }]));
    return {
      request: this.request.id,
      ending: this.end === undefined ? undefined : ENDING_REASONS[this.end],
      locks: [this.request.lock, ...held.map(({ node }) => node.lock)]
        .filter(({ lost }) => !lost.aborted)
        .map(({ path }) => path),
      nodes: held.map(({ node, label }) => ({ id: node.id, label: label.name, state: node.node.state })),
    };
  }

  /**
   * Locks the records that were made with the acceptance, if the limits allow them, and those whose launch goes on; starts
   * the former. To be called before `run`. `created`: the ids, one per slot without a node. Never rejects: `run` deals with a failure.
   */
  async lockNodes(created: AcceptedRequest['created']): Promise<void> {
    try {
      await this.lockEmptySlots(created);
    } catch (error) {
      this.lockFailure = { error };
    }
  }

  /** Resolves when the handler holds nothing any more. Rejects only when that could not be achieved. */
  async run(): Promise<void> {
    try {
      if (this.lockFailure !== undefined) throw this.lockFailure.error;
      for (const { launch: toLaunch, node } of this.slots) {
        if (!toLaunch && node !== undefined) this.driverHandler.nodeReusedNotification?.(node.node);
      }
      await this.fulfil(await this.launchAll());
      const nodes = this.slots.map((slot) => slot.node?.id);
      this.log.info('Request fulfilled', { nodes });
      this.decided('fulfilled', `with ${nodes.join(', ')}`);
    } catch (error) {
      await this.letGo(error);
    }
  }

  private async lockEmptySlots(created: AcceptedRequest['created']): Promise<void> {
    const empty = this.slots.filter((slot) => slot.node === undefined);
    const ids = created[Symbol.iterator]();
    const toLock = empty.map(({ resume }) => {
      const progress = resume?.node.progress ?? firstAttempt(this.context);
      const change = { state: 'building', progress } as const;
      return resume === undefined ? { id: ids.next().value ?? '', change } : { id: resume.id, from: resume, change };
    });
    await this.confirm(empty, created);
    if (toLock.length === 0) return;
    const handles = await this.context.store.nodes.tryLockAll(toLock);
    if (handles === undefined) throw new LostOwnershipError(`${NODEPOOL_ROOT}/nodes/${toLock[0]?.id ?? ''}`);
    for (const [index, slot] of empty.entries()) slot.node = handles[index];
  }

  /** Records of which nothing was begun are reservations that nobody has confirmed yet. */
  private async confirm(empty: readonly Slot[], created: AcceptedRequest['created']): Promise<void> {
    const fresh = empty.filter(({ resume }) => resume === undefined || resume.node.state === 'init');
    const records = [
      ...created.map((id) => ({ id, version: 0 })),
      ...fresh.flatMap(({ resume }) => (resume === undefined ? [] : [resume])),
    ].map(({ id, version }) => ({ id, version }));
    const lastId = records.reduce((last, { id }) => (id > last ? id : last), '');
    const { request } = this.request;
    const handedOver = this.slots.flatMap(({ owner, node }) =>
      node === undefined || owner === undefined || owner.tenant_name === request.tenant_name ? [] : [node],
    );
    const labels = fresh.map(({ label }) => label.name);
    const hasNothingNew = lastId === '' && handedOver.length === 0;
    const lack = hasNothingNew ? undefined : await this.pool.confirm(request, lastId, labels, handedOver);
    this.confirmed = lack === undefined;
    if (lack === undefined) return;
    this.handOverRefused = handedOver.length > 0;
    throw new NoRoomError(lack, records);
  }

  /** The changes that make the nodes ready, in the order of the slots. */
  private async launchAll(): Promise<Partial<NodeData>[]> {
    let outstanding = this.slots.filter((slot) => slot.launch).length;
    this.launches = this.slots.map(async (slot): Promise<Partial<NodeData>> => {
      const { node } = slot;
      if (node === undefined) throw new LostOwnershipError(this.request.lock.path);
      if (!slot.launch) return {};
      const change = await this.launchSlot(slot, node);
      outstanding -= 1;
      if (outstanding === 0) return change;
      // Siblings are still on their way: what we have must not be lost with this process.
      await node.update(change);
      return {};
    });
    return Promise.all(this.launches);
  }

  private async launchSlot(slot: Slot, node: NodeHandle): Promise<Partial<NodeData>> {
    const { pool, request } = this;
    try {
      return await launch(this.context, {
        node,
        provider: pool.provider,
        handler: this.driverHandler,
        pool: pool.config,
        label: slot.label,
        requestor: request.request.requestor,
        upload: slot.upload,
        resumed: slot.resume !== undefined,
        signal: this.ending.signal,
        retryLack: (lastId) => pool.retryLack(request.request, lastId, slot.label.name),
        log: this.log.with({ node_id: node.id, label: slot.label.name }),
        canMoveOn: () => pool.canMoveOn(request.request),
        onAttempt: (failure) => pool.attempted(slot.label.name, node.node.az ?? undefined, failure),
      });
    } catch (error) {
      this.failedSlot ??= slot;
      throw error;
    }
  }

  private async fulfil(changes: readonly Partial<NodeData>[]): Promise<void> {
    const nodes = this.slots.flatMap(({ node }, index) =>
      node === undefined ? [] : [{ handle: node, change: changes[index] ?? {} }],
    );
    this.throwIfEnded();
    await this.request.fulfil(nodes);
  }

  private throwIfEnded(): void {
    if (this.end !== undefined) throw toDriverError(this.ending.signal.reason);
  }

  private finishEarly(end: Ending): void {
    if (this.end !== undefined) return;
    this.end = end;
    this.ending.abort(new Error(ENDING_REASONS[end]));
  }

  /** Something did not work, or nobody wants it any more. Whatever happens, no lock stays behind. */
  private async letGo(error: unknown): Promise<void> {
    const end = error instanceof RequestGoneError ? 'withdrawn' : this.end;
    // Siblings of a failed launch stop too; whatever they have made is deleted with their nodes.
    this.finishEarly('stopped');
    // They end at once; what they are writing just now decides what becomes of their nodes.
    await Promise.allSettled(this.launches);
    try {
      await this.endWith(end, error);
    } finally {
      const nodes = this.slots.flatMap(({ node }) => (node === undefined ? [] : [node]));
      await Promise.all([this.request, ...nodes].map(({ lock }) => lock.release()));
    }
  }

  private async endWith(end: Ending | undefined, error: unknown): Promise<void> {
    if (end === 'lost' || this.request.lock.lost.aborted) {
      this.log.debug('Lost the request with the session; the launcher that takes it over goes on');
      this.decided('lost it with the session');
    } else if (end === 'withdrawn') {
      this.log.info('Request withdrawn');
      this.decided('withdrawn');
      await this.releaseNodes();
    } else if (end === 'stopped') {
      this.log.info('Let go of the request; it is taken up again');
      this.decided('let go of it, to be taken up again');
      await this.releaseForResumption();
    } else if (error instanceof NoRoomError) {
      await this.undo(error);
    } else if (error instanceof LostOwnershipError || isZooKeeperError(error)) {
      // Nothing is wrong with the nodes: whoever takes the request up next goes on with them.
      const { message: reason } = error;
      this.log.warn('Gave the request up, to take it up again: its records could not be written', { reason });
      this.decided('let go of it, to be taken up again', toDriverError(error).message);
      await this.releaseForResumption();
    } else {
      await this.failed(error);
    }
  }

  /** As if we had not accepted it: it waits until there is room. */
  private async undo({ message, records }: NoRoomError): Promise<void> {
    this.log.debug('Took the acceptance back: there is no room after all', { reason: message });
    this.decided('waits for room', message);
    await this.releaseNodes();
    await this.orWithdrawn(() => this.request.undo(records));
  }

  private async failed(error: unknown): Promise<void> {
    const failure = toDriverError(error);
    const policy = ERROR_POLICIES[failure.code];
    if (policy.retry === 'when-room') {
      this.log.info('The cloud has no room for the request; it waits', { error: failure });
      this.decided('waits: the cloud has no room', failure.message);
      this.pool.outOfRoom();
      await this.giveBack({ state: 'requested' }, 'aborted');
      return;
    }
    const { failedSlot, pool } = this;
    const request = this.request.request;
    if (policy.isOutage && pool.canMoveOn(request)) {
      this.log.warn('The cloud fails; the request is left to another pool', { error: failure });
      this.decided('leaves it to others', `the cloud fails: ${failure.message}`);
      pool.movedOn(failure);
      await this.giveBack({ state: 'requested' }, 'aborted');
      return;
    }
    if (policy.disablesLabel && failedSlot !== undefined) {
      pool.labelRefused(failedSlot.label.name, failedSlot.node?.node.az ?? undefined, failure.message);
      if (pool.canServe(request)) {
        this.log.warn('The cloud refuses the request in this zone; another one is tried', { error: failure });
        this.decided('waits for another zone', failure.message);
        await this.giveBack({ state: 'requested' });
        return;
      }
    }
    const waited = policy.isOutage ? `the cloud has failed for ${OUTAGE_PATIENCE_MS / 60_000} minutes: ` : '';
    this.log.warn('Declining the request: its nodes could not be launched', { error: failure });
    this.decided('declined: its nodes could not be launched', `${waited}${failure.message}`);
    await this.giveBack(pool.declined(request));
  }

  private decided(what: string, reason?: string): void {
    const { config, provider } = this.pool;
    this.context.decisions.record('request', this.request.id, `${provider.config.name}/${config.name}`, what, reason);
  }

  /** Gives the request back; ready nodes stay for others, the rest is deleted. */
  private async giveBack(change: Partial<NodeRequestData>, rest: 'failed' | 'aborted' = 'failed'): Promise<void> {
    await this.releaseNodes(rest);
    await this.orWithdrawn(() => this.request.release(change));
  }

  private async orWithdrawn(write: () => Promise<void>): Promise<void> {
    try {
      await write();
    } catch (error) {
      if (!(error instanceof RequestGoneError)) throw error;
      this.log.info('Request withdrawn');
    }
  }

  /** Ready nodes become free for others, with their owners before if the hand-over was not confirmed; the rest is deleted. */
  private async releaseNodes(rest: 'failed' | 'aborted' = 'aborted'): Promise<void> {
    await this.eachNode((node, { owner }) => {
      if (node.node.state !== 'ready') return node.release({ state: rest, allocated_to: null });
      return node.release({ ...(this.confirmed ? {} : owner), allocated_to: null });
    });
  }

  /** Nothing is changed: launches go on where they are, in other hands. */
  private async releaseForResumption(): Promise<void> {
    await this.eachNode((node) => node.release());
  }

  private async eachNode(release: (node: NodeHandle, slot: Slot) => Promise<void>): Promise<void> {
    await Promise.all(
      this.slots.map(async (slot) => {
        const { node } = slot;
        if (node === undefined || node.lock.lost.aborted) return;
        try {
          await release(node, slot);
        } catch (error) {
          this.log.warn('A node could not be let go of properly', { node_id: node.id, error });
        }
      }),
    );
  }
}

const ENDING_REASONS: Readonly<Record<Ending, string>> = {
  withdrawn: 'the request was withdrawn',
  lost: 'the lock of the request was lost with the session',
  stopped: 'the provider pool stops working on the request',
};
