/**
 * Runs the last stages of an accepted request: quota confirmation, launch, fulfilment. If the request is cancelled or
 * lost, if the pool stops, or if a stage fails, `termination.ts` ends the work.
 */

import { setMaxListeners } from 'node:events';
import type { Logger, NodeData } from '@nodepool/core';
import { CallbackController, addAbortCallback, removeAbortCallback, uploadToTest } from '@nodepool/core';
import type { AcceptedRequest, RequestHandle } from '@nodepool/store';
import { LostOwnershipError, NODEPOOL_ROOT, RequestGoneError } from '@nodepool/store';
import type { RequestActivity } from '@nodepool/status';
import { nameOf } from '../capacity/pool-offers.js';
import type { AttemptOutcome, LaunchJob } from '../launch/launch-job.js';
import { launchNodes } from '../launch/launch-nodes.js';
import { labelFields } from '../launch/node-record.js';
import { started } from '../launch/recorded-attempt.js';
import { confirmQuota } from '../quota/quota-confirmation.js';
import type { Pool } from '../pool/pool.js';
import type { ScheduledRequest } from './acceptance.js';
import { requestFields } from './request-info.js';
import { recordDecision, type ReportOutcome } from './request-outcome.js';
import { isHeld, slotsOf, tentativeRecords, unconfirmedPart, type HeldSlot, type Slot } from './slots.js';
import { abandon, describeTermination, type Termination } from './termination.js';

/** Result of the check of ready nodes. `changes` are due to the checks, in the order of the nodes. */
type Reused =
  | Extract<Termination, { readonly kind: 'unusable' }>
  | { readonly kind: 'usable'; readonly changes: readonly Partial<NodeData>[] };

const NOTHING_REUSED: Reused = { kind: 'usable', changes: [] };

export class RequestFulfilment {
  /** Aborts when the work ends early; its reason is the cause. */
  private readonly ending = new CallbackController();
  private termination: Termination | undefined;
  /** True once the limits are confirmed for everything that the request has. */
  private confirmed = false;
  private readonly request: RequestHandle;
  private readonly slots: readonly Slot[];
  private readonly log: Logger;

  constructor(
    private readonly pool: Pool,
    private readonly scheduled: ScheduledRequest,
    private readonly accepted: AcceptedRequest,
    private readonly report: ReportOutcome,
  ) {
    const { request } = accepted;
    this.request = request;
    this.slots = slotsOf(scheduled.allocation, accepted.reused);
    this.log = pool.context.log.with(requestFields(pool, request));
    // Each node adds listeners; the default limit would warn of a leak.
    setMaxListeners(0, this.ending.signal);
    // A lock is lost only with its session, whose signal all requests share.
    if (request.lock.held) addAbortCallback(request.lock.session.lost, this.onLost);
    else this.onLost();
  }

  /** Ends the work because the requestor has deleted the request. */
  cancel(): void {
    this.end({ kind: 'cancelled' });
  }

  /** Ends the work so that another launcher, or this one with another configuration, resumes it. */
  stop(): void {
    this.end({ kind: 'stopped' });
  }

  /** Returns the locks and nodes of the request, for the stack dump. */
  activity(): RequestActivity {
    const held = this.slots.flatMap(({ node, label }) => (node === undefined ? [] : [{ node, label }]));
    return {
      request: this.request.id,
      ending: this.termination === undefined ? undefined : describeTermination(this.termination),
      locks: [this.request.lock, ...held.map(({ node }) => node.lock)]
        .filter(({ held }) => held)
        .map(({ path }) => path),
      nodes: held.map(({ node, label }) => ({ id: node.id, label: label.name, state: node.node.state })),
    };
  }

  /**
   * Resolves once everything held for the request is released, with the termination if it was not fulfilled. Rejects if
   * its state could not be written. `onRecorded` is called once the confirmation of its records has succeeded or
   * failed.
   */
  async run(onRecorded: () => void): Promise<Termination | undefined> {
    const termination = await this.runStages(onRecorded);
    removeAbortCallback(this.request.lock.session.lost, this.onLost);
    if (termination === undefined) return undefined;
    this.end(termination);
    const { pool, request, confirmed, log, report } = this;
    await abandon({ pool, request, slots: this.slots, confirmed, log, report }, termination);
    return termination;
  }

  private async runStages(onRecorded: () => void): Promise<Termination | undefined> {
    try {
      let unconfirmed: Termination | undefined;
      try {
        unconfirmed = await this.confirm();
      } finally {
        onRecorded();
      }
      if (unconfirmed !== undefined) return this.termination ?? unconfirmed;
      const slots = this.slots.filter(isHeld);
      const toLaunch = slots.filter((slot) => slot.toLaunch);
      const ready = slots.filter((slot) => !slot.toLaunch);
      const reused = ready.length === 0 ? NOTHING_REUSED : await this.reuse(ready);
      if (reused.kind === 'unusable') return this.termination ?? reused;
      const jobs = toLaunch.map((slot) => this.launchJob(slot));
      const launched = await launchNodes(this.pool.context, jobs, (failed) => this.end(failed));
      if (launched.kind === 'failed') return this.termination ?? launched;
      if (this.termination !== undefined) return this.termination;
      if (!this.scheduled.driverHandler.launchesComplete()) {
        const { driver } = this.pool.provider.config;
        this.log.warn('The driver reports launches in progress after all of them have ended; report it', { driver });
      }
      // Launches take minutes, in which a node that is already ready may have lost its instance.
      const lost = slots.find((slot) => this.isLost(slot));
      if (lost !== undefined) {
        return { kind: 'unusable', reason: `node ${lost.node.id} has become unusable meanwhile` };
      }
      const { images } = this.pool.context.store;
      const isTest = uploadToTest(this.request.request) !== undefined;
      const barred = slots.find(({ node: { node } }) =>
        isTest ? images.isBarred(node.image_id) : !images.servesRequests(node.image_id),
      );
      if (barred !== undefined) {
        return { kind: 'unusable', reason: `the image of node ${barred.node.id} was rejected meanwhile` };
      }
      await this.fulfil(slots, launched.changes, reused.changes);
      return undefined;
    } catch (error) {
      if (error instanceof RequestGoneError) return { kind: 'cancelled' };
      return this.termination ?? { kind: 'failed', error, job: undefined };
    }
  }

  /** Confirms the quota, then locks the records of nodes to launch, which makes them `building`. */
  private async confirm(): Promise<Termination | undefined> {
    const { pool, request, slots, accepted } = this;
    if (accepted.started.length > 0) {
      // The acceptance has created them for all slots.
      slots.forEach((slot, index) => (slot.node = accepted.started[index]));
      this.confirmed = true;
      return undefined;
    }
    const records = tentativeRecords(slots, accepted.created);
    const created = accepted.created[Symbol.iterator]();
    const toLaunch = slots.filter(({ node }) => node === undefined);
    const targets = toLaunch.map((slot) => {
      const { resumed, planned } = slot;
      const first = started(pool.context, planned?.machineType);
      const change = { ...first, progress: resumed?.node.progress ?? first.progress };
      if (resumed !== undefined)
        return { id: resumed.id, from: resumed, change: { ...change, ...this.presentFields(slot) } };
      return { id: created.next().value ?? '', change };
    });
    const unconfirmed = unconfirmedPart(request.request, slots, records);
    const shortfall = await confirmQuota(pool, unconfirmed);
    if (shortfall !== undefined) {
      return { kind: 'unconfirmed', shortfall, records, isHandOver: unconfirmed.handedOver.length > 0 };
    }
    this.confirmed = true;
    if (targets.length === 0) return undefined;
    const handles = await pool.context.store.nodes.tryLockAll(targets);
    if (handles === undefined) throw new LostOwnershipError(`${NODEPOOL_ROOT}/nodes/${targets[0]?.id ?? ''}`);
    toLaunch.forEach((slot, index) => (slot.node = handles[index]));
    return undefined;
  }

  /**
   * Returns the fields of a resumed launch that the present configuration changes, or that a Python launcher has not
   * written yet. An instance of another image keeps the login of its image.
   */
  private presentFields({ label, upload, resumed }: Slot): Partial<NodeData> {
    if (resumed === undefined) return {};
    const { node } = resumed;
    const fields = labelFields({ label, upload });
    if (node.progress !== null || node.external_id !== null) return node.image_id === fields.image_id ? fields : {};
    return { ...fields, resources: node.resources ?? this.pool.labels.need(label.name, undefined).toResources() };
  }

  private async reuse(ready: readonly HeldSlot[]): Promise<Reused> {
    const checks = await Promise.all(ready.map(({ node }) => this.pool.readyNodes.verify(node.node)));
    const changes: Partial<NodeData>[] = [];
    for (const check of checks) {
      if (check.kind === 'unusable') return check;
      changes.push(check.change);
    }
    for (const { node } of ready) this.scheduled.driverHandler.nodeReusedNotification?.(node.node);
    return { kind: 'usable', changes };
  }

  private isLost({ node: { node }, label, toLaunch }: HeldSlot): boolean {
    const { readyNodes } = this.pool;
    if (!toLaunch) return !readyNodes.isUsable(node, label.name);
    // The node that was launched last becomes ready with the fulfilment.
    return node.state === 'ready' && readyNodes.isLost(node);
  }

  /** Fulfils the request in one transaction. `launchedChanges` make launched nodes ready; both are in slot order. */
  private async fulfil(
    slots: readonly HeldSlot[],
    launchedChanges: readonly Partial<NodeData>[],
    reusedChanges: readonly Partial<NodeData>[],
  ): Promise<void> {
    const launched = launchedChanges[Symbol.iterator]();
    const reused = reusedChanges[Symbol.iterator]();
    // The transaction releases the lock, and fails if the lock is lost.
    removeAbortCallback(this.request.lock.session.lost, this.onLost);
    await this.request.fulfil(
      slots.map(({ node, toLaunch }) => ({
        handle: node,
        change: (toLaunch ? launched : reused).next().value ?? {},
      })),
    );
    const nodes = slots.map(({ node }) => node.id);
    this.pool.context.timelines.settled(this.request.id, 'fulfilled', nodes);
    this.log.info('Request fulfilled', { nodes });
    recordDecision(this.pool, this.request.id, 'fulfilled', `with ${nodes.join(', ')}`);
  }

  private launchJob({ label, upload, resumed, node }: HeldSlot): LaunchJob {
    const { pool, slots } = this;
    const { driverHandler, abandonedBy } = this.scheduled;
    return {
      ...{ node, pool, driverHandler, label, upload, abandonedBy },
      request: this.request.request,
      isAlone: slots.length === 1,
      resumed: resumed !== undefined,
      signal: this.ending.signal,
      log: this.log.with({ node_id: node.id, label: label.name }),
      report: (outcome) => this.attempted(outcome),
      leave: (reason) => this.end({ kind: 'left', reason }),
    };
  }

  /** Reports the result of an attempt and records the offer for explanations. */
  private attempted(outcome: AttemptOutcome): void {
    const { id } = this.request;
    const tried = nameOf(outcome.attempt.offer);
    if (outcome.kind === 'reached') {
      if (outcome.evidence === 'ready') recordDecision(this.pool, id, 'launched a node', tried);
    } else {
      const { kind, failure } = outcome;
      const ended = failure.code === 'aborted' ? 'ended a launch attempt' : 'tried an offer that failed';
      const decision = kind === 'retrying' ? 'a step of a launch failed and is repeated' : ended;
      recordDecision(this.pool, id, decision, `${tried}: ${failure.message}`);
    }
    this.report(id, outcome);
  }

  private readonly onLost = (): void => this.end({ kind: 'lost' });

  /** Ends the work; only the first termination counts. */
  private end(termination: Termination): void {
    if (this.termination !== undefined) return;
    this.termination = termination;
    this.ending.abort(new Error(describeTermination(termination)));
  }
}
