/**
 * State machine that creates the namespace, project or pod of a node, and the objects in it.
 *
 *     start ──> creating ──────────────> service-account ──> … ──> pod ──> booting ──> ready
 *                  │ outcome unknown            ^                  │  ^
 *                  └────> looking ──────────────┘                  v  │ may pass
 *                                                               explaining
 *
 * Names are determined by the launch attempt. A creation with an unknown outcome is never repeated: the machine asks
 * the cluster for the name. All later steps can be repeated, so a resumed machine runs them all.
 */

import {
  ConflictError,
  DriverError,
  InstanceFailedError,
  PendingCall,
  StepRetries,
  toDriverError,
  withOutcome,
  type Advance,
  type CreateRequest,
  type ExternalId,
  type Instance,
  type JsonValue,
  type MachineCall,
  type StateMachine,
} from '@nodepool/core';
import type { ObjectCache } from './client/object-cache.js';
import { EVENTS, type KubernetesObject } from './client/objects.js';
import type { Cluster } from './cluster.js';
import type { KubernetesLabel } from './config.js';
import { ForbiddenError, ForeignObjectError, TerminatingError } from './errors.js';
import type { Tags } from './identity.js';
import { LaunchPlan, type PodPlace } from './launch-plan.js';
import { podStateOf, failureError, warningIn, type PodState } from './pod-state.js';

/** Interval between two looks at the copy of the pod (ms). A look makes no call. */
const CHECK_INTERVAL_MS = 500;
/** Time for which the pod may be missing from a current copy (ms). */
const MISSING_MS = 10_000;
/** Time for which the kubelet may repeat the pull of an image, or the creation of a container (ms). */
const KUBELET_LIMIT_MS = 60_000;
/** Time after which such a failure is reported, so that other requests are served elsewhere (ms). */
const REPORT_MS = 5000;
/** Share of `launch-timeout` for which a pod may fail, or be unschedulable while an autoscaler adds nodes. */
const LAUNCH_SHARE = 0.8;
/** Searches after a creation with an unknown outcome, and the time from the first to the last (ms). */
const MIN_SEARCHES = 3;
const SETTLE_MS = 15_000;

type FailingPod = Extract<PodState, { state: 'failing' }>;

export class CreateMachine implements StateMachine {
  state = 'start';
  externalId: ExternalId | undefined;
  private readonly plan: LaunchPlan;
  private readonly tags: Tags;
  private readonly pending = new PendingCall<void>();
  private readonly events = new PendingCall<readonly KubernetesObject[]>();
  private nextStep = 0;
  /** Why the outcome of the creation is unknown; undefined if a former process started it. */
  private doubt: DriverError | undefined;
  private looks = 0;
  private firstLookAt = 0;
  private final: DriverError | undefined;
  private readonly retries: StepRetries;
  private ownCache: ObjectCache | undefined;
  private bootingSince = 0;
  private missingSince: number | undefined;
  private failing: FailingPod | undefined;
  private failureSince = 0;
  /** The failure that was reported. */
  private explained: FailingPod['failure'] | undefined;
  private result: Instance | undefined;

  constructor(
    private readonly cluster: Cluster,
    request: CreateRequest<KubernetesLabel>,
    saved: JsonValue,
  ) {
    this.plan = new LaunchPlan(cluster, request);
    this.retries = new StepRetries(cluster.clock, cluster.random);
    this.tags = { ...request.tags };
    if (request.externalId !== null) this.externalId = request.externalId;
    if (request.externalId !== null || saved !== null) this.state = 'looking';
  }

  advance(call: MachineCall): Advance {
    try {
      return this.retries.stepped(this.step(call));
    } catch (error) {
      return this.recover(toDriverError(error), call);
    }
  }

  /** The framework stores the external id; a saved machine implies that the creation was started. */
  save(): JsonValue {
    return { state: this.state };
  }

  private step(call: MachineCall): Advance {
    switch (this.state) {
      case 'start':
        this.state = 'creating';
        return this.pending.start(this.plan.create(call));
      case 'creating':
        return this.pending.underway ?? this.afterCreation(call);
      case 'looking':
        return this.look(call);
      case 'booting':
        return this.watch(call);
      case 'explaining':
        return this.events.underway ?? this.afterExplanation(call);
      case 'ready':
        return { next: 'complete', ...(this.result === undefined ? {} : { instance: this.result }) };
      default:
        return this.pending.underway ?? this.afterStep(call);
    }
  }

  /** Retries temporary failures of steps that can be repeated. */
  private recover(error: DriverError, call: MachineCall): Advance {
    if (this.final !== undefined) throw this.final;
    if (error instanceof TerminatingError)
      return this.end(new InstanceFailedError(error.message, { cause: error }), call);
    const { state } = this;
    const mayExist = state !== 'creating';
    const repeatable = !(error instanceof ForeignObjectError) && (mayExist || error.outcome === 'not-applied');
    const cause = this.hasNoRightsYet(error) ? new ConflictError(error.message, { cause: error }) : error;
    const retry = repeatable ? this.retries.after(cause, { state, mayExist }, call) : undefined;
    if (retry === undefined) {
      const isInDoubt = state === 'looking' && error.outcome === 'not-applied';
      return this.end(isInDoubt ? withOutcome(error, 'unknown') : error, call);
    }
    if (this.state === 'creating') this.state = 'start';
    return retry;
  }

  /** Returns true if the account may not use its new project: OpenShift needs a moment to apply the rights. */
  private hasNoRightsYet(error: DriverError): boolean {
    const isInProject = this.cluster.config.flavour === 'openshift' && this.externalId !== undefined;
    return isInProject && this.state !== 'looking' && error instanceof ForbiddenError;
  }

  /** Ends the launch with an error that is not retried. */
  private end(error: DriverError, call: MachineCall): never {
    this.final = error;
    this.releaseCache(call);
    throw error;
  }

  private afterCreation(call: MachineCall): Advance {
    try {
      this.pending.take();
    } catch (error) {
      const failure = toDriverError(error);
      if (failure.outcome !== 'unknown') throw failure;
      call.log.info('Searching the cluster for the instance of a launch attempt whose outcome is unknown', {
        reason: failure.message,
      });
      this.doubt = failure;
      this.state = 'looking';
      return this.look(call);
    }
    return this.found(call);
  }

  /** Asks the cluster for the name of the attempt. The cluster's answer includes everything that it has accepted. */
  private look(call: MachineCall): Advance {
    if (this.pending.underway !== undefined) return this.pending.underway;
    if (!this.pending.settled) {
      if (this.looks === 0) this.firstLookAt = this.cluster.clock.monotonic();
      return this.pending.start(this.plan.find(call));
    }
    try {
      this.pending.take();
    } catch (error) {
      const failure = toDriverError(error);
      if (failure.code !== 'not-found') throw failure;
      return this.notFound(call);
    }
    return this.found(call);
  }

  private notFound(call: MachineCall): Advance {
    if (this.externalId !== undefined) throw new InstanceFailedError('the instance disappeared during its launch');
    this.looks += 1;
    const elapsed = this.cluster.clock.monotonic() - this.firstLookAt;
    if (this.looks < MIN_SEARCHES || elapsed < SETTLE_MS) return { next: 'delay', ms: SETTLE_MS / (MIN_SEARCHES - 1) };
    // Not retried here: the launcher starts a new attempt, whose name differs from that of an instance created late.
    const reason = this.doubt?.message ?? 'the launcher was restarted during the creation';
    const options = { cause: this.doubt, outcome: 'not-applied' } as const;
    const message = `${reason}; the cluster has no such instance`;
    return this.end(new DriverError(this.doubt?.code ?? 'transient', message, options), call);
  }

  private found(call: MachineCall): Advance {
    this.externalId = this.plan.externalId;
    return this.startStep(call);
  }

  private startStep(call: MachineCall): Advance {
    const step = this.plan.steps[this.nextStep];
    if (step === undefined) return this.boot(call);
    this.state = step.state;
    return this.pending.start(step.run(call));
  }

  private afterStep(call: MachineCall): Advance {
    // A step that has failed is started again.
    if (!this.pending.settled) return this.startStep(call);
    this.pending.take();
    this.nextStep += 1;
    return this.startStep(call);
  }

  private boot(call: MachineCall): Advance {
    const { pod } = this.plan;
    if (pod === undefined) return this.finish(undefined, call);
    this.bootingSince = this.cluster.clock.monotonic();
    this.state = 'booting';
    return { next: 'delay', ms: 1 };
  }

  /** Reads the pod from the copy that a watch keeps current. */
  private watch(call: MachineCall): Advance {
    const { pod } = this.plan;
    if (pod === undefined) throw new DriverError('unexpected', 'a launch without a pod waits for one');
    const cache = this.cacheOf(pod);
    const found = cache.get(pod.name, pod.namespace);
    if (found === undefined) return this.awaitMissing(cache);
    this.missingSince = undefined;
    const state = podStateOf(found);
    if (state.state === 'running') return this.finish(found, call);
    if (state.state === 'failing') return this.evaluate(state, pod, call);
    this.failing = undefined;
    this.explained = undefined;
    return { next: 'delay', ms: CHECK_INTERVAL_MS };
  }

  private awaitMissing(cache: ObjectCache): Advance {
    const now = this.cluster.clock.monotonic();
    if (!cache.isCurrent) this.missingSince = undefined;
    else this.missingSince ??= now;
    if (this.missingSince !== undefined && now - this.missingSince >= MISSING_MS) {
      throw new InstanceFailedError('the pod disappeared while it was booting');
    }
    return { next: 'delay', ms: CHECK_INTERVAL_MS };
  }

  /** Reads the events of a failing pod when the failure is reported and when its time limit is over. */
  private evaluate(failing: FailingPod, pod: PodPlace, call: MachineCall): Advance {
    const now = this.cluster.clock.monotonic();
    // The kubelet alternates between a failure and the wait before the next attempt, which are one failure.
    if (this.failing?.failure !== failing.failure) this.failureSince = now;
    this.failing = failing;
    const isReported = failing.failure === 'refused' && now - this.failureSince >= REPORT_MS;
    if (!this.isFinal(now) && (!isReported || this.explained === failing.failure)) {
      return { next: 'delay', ms: CHECK_INTERVAL_MS };
    }
    this.explained = failing.failure;
    this.state = 'explaining';
    return this.events.start(this.readEvents(pod, call));
  }

  private isFinal(now: number): boolean {
    const limitMs = LAUNCH_SHARE * this.cluster.config.launchTimeoutMs;
    switch (this.failing?.failure) {
      case undefined:
        return false;
      case 'refused':
      case 'creation':
        return now - this.failureSince >= Math.min(KUBELET_LIMIT_MS, limitMs);
      case 'unschedulable':
        return now - this.bootingSince >= limitMs;
      default:
        return true;
    }
  }

  private afterExplanation(call: MachineCall): Advance {
    this.state = 'booting';
    const { failing } = this;
    const { pod } = this.plan;
    if (pod === undefined || failing === undefined) return { next: 'delay', ms: CHECK_INTERVAL_MS };
    const error = failureError(pod.name, failing, warningIn(this.events.take()));
    if (this.isFinal(this.cluster.clock.monotonic())) return this.end(error, call);
    call.onRetry?.(error);
    return { next: 'delay', ms: CHECK_INTERVAL_MS };
  }

  private async readEvents({ name, namespace }: PodPlace, call: MachineCall): Promise<readonly KubernetesObject[]> {
    const fieldSelector = `involvedObject.kind=Pod,involvedObject.name=${name}`;
    try {
      const { items } = await this.cluster.client.list({ kind: EVENTS, namespace }, { fieldSelector }, call);
      return items;
    } catch (error) {
      call.log.info('The events of a pod cannot be read', { pod: name, namespace, error: toDriverError(error) });
      return [];
    }
  }

  private finish(pod: KubernetesObject | undefined, call: MachineCall): Advance {
    this.releaseCache(call);
    this.result = this.plan.instance(pod);
    this.state = 'ready';
    return { next: 'complete', instance: this.result };
  }

  private cacheOf({ name, namespace }: PodPlace): ObjectCache {
    return (
      this.ownCache ??
      this.cluster.podsIn(namespace, this.tags) ??
      (this.ownCache = this.cluster.watchPod(name, namespace))
    );
  }

  private releaseCache(call: MachineCall): void {
    const { ownCache } = this;
    if (ownCache === undefined) return;
    this.ownCache = undefined;
    this.cluster.release(ownCache).catch((error: unknown) => {
      call.log.warn('The watch of a pod could not be ended', { error });
    });
  }
}
