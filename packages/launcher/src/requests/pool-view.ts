/** The read-only view of a pool that the stages of a request's path use. */

import type {
  ImageUpload,
  LabelConfig,
  LogFields,
  Logger,
  Node,
  NodeData,
  NodeRequest,
  PoolConfig,
  Provider,
  QuotaInformation,
  RequestInfo,
} from '@nodepool/core';
import type { RequestEntry } from '@nodepool/store';
import type { LauncherContext } from '../context.js';
import type { Wait } from '../diagnostics/timeline/timeline-recorder.js';
import type { PoolRef, QuotaLedger } from '../quota/quota-ledger.js';
import type { TimedLaunch, WatchedLaunch } from '../capacity/slow-launches.js';
import type { StrandedLaunch } from '../capacity/stranded-launches.js';
import type { OfferPlan } from '../capacity/pool-offers.js';
import type { Offer } from '../diagnostics/health.js';
import type { WaitLimits } from '../capacity/wait-limits.js';
import type { Candidates } from './candidate-pools.js';

export interface PoolView {
  readonly context: LauncherContext;
  readonly provider: Provider;
  readonly config: PoolConfig;
  /** Name in `declined_by`. */
  readonly id: string;
  /** `provider/pool`, as explanations name it. */
  readonly name: string;
  readonly place: PoolRef;
  readonly labels: LabelView;
  readonly ledger: Pick<QuotaLedger, 'isLimited' | 'confirm' | 'retryShortfall' | 'changeToFree'>;
  readonly candidates: Candidates;
  readonly supply: SupplyView;
  readonly log: Logger;
  /** Aborts when the provider is stopped. */
  readonly signal: AbortSignal;
  readonly offers: OfferView;
  readonly waitLimits: Pick<WaitLimits, 'limitOf'>;
  /** Returns true if the request is not locked and has nodes in this pool. */
  hasNodesOf(request: NodeRequest): boolean;
  /** Returns the reason why the request cannot be served, now or ever; otherwise undefined. */
  obstacle(request: NodeRequest): string | undefined;
  /**
   * Returns what the request waits for before it can be served in this pool; undefined if it waits only for capacity.
   */
  waitsFor(request: NodeRequest): Wait | undefined;
}

/** The labels of a pool: the resources that their nodes need, their images and zones. */
export interface LabelView {
  label(name: string): LabelConfig | undefined;
  need(name: string, machineType: string | undefined): QuotaInformation;
  /** Returns the upload from which nodes of a label with a disk image are launched. */
  upload(label: LabelConfig): ImageUpload | undefined;
}

/** The offers of a pool, as used by requests. */
export interface OfferView {
  /**
   * Chooses offers for nodes of these labels, all in the same zone (`zone` if given by other nodes). `skip` is the
   * number of usable machine types to skip.
   */
  plan(labels: readonly string[], zone: string | undefined, skip: number): OfferPlan;
  /** Returns another offer for a node whose launch has failed, in the same zone unless the node is alone. */
  alternative(failed: Offer, isAlone: boolean, isTried: (offer: Offer) => boolean): Offer | undefined;
  /** Returns true if the breaker of the offer, or of the provider if no offer is given, admits a launch now. */
  admits(offer?: Offer): boolean;
  /** Starts the probes of half-open offers. The returned function ends probes that had no result. */
  begin(offers: readonly Offer[]): () => void;
  /** Starts measuring a launch with this offer, and abandons it if it is slow. */
  watch(offer: Offer, launch: WatchedLaunch): TimedLaunch;
  /**
   * Abandons a launch without an instance if the provider is in trouble, and one that the cloud refuses, until the
   * returned function is called.
   */
  watchProvider(launch: StrandedLaunch): () => void;
}

/** The ready nodes of a provider, as its cloud or the checks of its machines show them. */
export interface SupplyView {
  /**
   * Returns true if a ready node may be handed out for the label, according to the latest check of its machine or the
   * latest listing of its cloud.
   */
  isUsable(node: Node, label: string): boolean;
  /**
   * Checks a node before it is handed out. Checks its machine or lists the instances if the latest check or listing is
   * too old.
   */
  verify(node: Node): Promise<NodeCheck>;
}

/** The result of a check of a ready node. */
export type NodeCheck =
  /** `change` adapts the record to what the check of the machine has found, e.g. other host keys. */
  | { readonly kind: 'usable'; readonly change: Partial<NodeData> }
  | { readonly kind: 'unusable'; readonly reason: string };

/** Returns log fields of a request in a pool. */
export function requestFields(
  { provider, config }: PoolView,
  { id, request }: Pick<RequestEntry, 'id' | 'request'>,
): LogFields {
  return {
    node_request_id: id,
    event_id: request.event_id,
    provider: provider.config.name,
    pool: config.name,
  };
}

/** Returns the request in the form that drivers get. */
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
