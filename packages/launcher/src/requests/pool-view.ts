/** The pool as the stages of a request's path read it. They change nothing through it. */

import type {
  ImageUpload,
  LabelConfig,
  LogFields,
  Logger,
  Node,
  NodeRequest,
  PoolConfig,
  Provider,
  QuotaInformation,
  RequestInfo,
} from '@nodepool/core';
import type { RequestEntry } from '@nodepool/store';
import type { LauncherContext } from '../context.js';
import type { Wait } from '../diagnostics/timeline/timeline-recorder.js';
import type { Place, QuotaLedger } from '../quota/quota-ledger.js';
import type { TimedLaunch } from '../capacity/launch-times.js';
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
  readonly place: Place;
  readonly labels: LabelView;
  readonly ledger: Pick<QuotaLedger, 'isLimited' | 'confirm' | 'retryShortfall' | 'freeing'>;
  readonly candidates: Candidates;
  readonly supply: SupplyView;
  readonly log: Logger;
  /** Aborts when the provider is stopped. */
  readonly signal: AbortSignal;
  readonly offers: OfferView;
  readonly waitLimits: Pick<WaitLimits, 'limitOf'>;
  /** Returns true if the request, which no launcher works on, has nodes in this pool. */
  hasNodesOf(request: NodeRequest): boolean;
  /** Returns the reason why the request cannot be served, now or ever; undefined if it can. */
  obstacle(request: NodeRequest): string | undefined;
  /** Returns what the request waits for before it can be served here; undefined if only for room. */
  waitsFor(request: NodeRequest): Wait | undefined;
}

/** The labels of a pool: what their nodes need, their images and zones. */
export interface LabelView {
  label(name: string): LabelConfig | undefined;
  need(name: string, machineType: string | undefined): QuotaInformation;
  /** Returns the upload that nodes of a label with a disk image use. */
  upload(label: LabelConfig): ImageUpload | undefined;
}

/** The offers of a pool as requests use them. */
export interface OfferView {
  /** Chooses offers for nodes of these labels, all in one zone: in `zone` if other nodes determine it. */
  plan(labels: readonly string[], zone: string | undefined): OfferPlan;
  /** Returns another offer for a node whose launch has failed, in the same zone unless the node is alone. */
  alternative(failed: Offer, isAlone: boolean, isTried: (offer: Offer) => boolean): Offer | undefined;
  /** Returns true if launches are sent to the offer, or to the provider if there is none, at the moment. */
  admits(offer?: Offer): boolean;
  /** Begins the probes that launches with these offers are. Returns how to end those that had no result. */
  begin(offers: readonly Offer[]): () => void;
  /** Measures a launch with this offer. */
  time(offer: Offer): TimedLaunch;
}

/** The nodes of machines that the provider declares. Nodes that it creates are always usable. */
export interface SupplyView {
  /** Returns true if a ready node may be handed out for the label, as far as is known without another check. */
  isUsable(node: Node, label: string): boolean;
  /** Resolves with the reason why a node must not be handed out, after another check of its machine if necessary. */
  verify(node: Node): Promise<string | undefined>;
}

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

/** Returns a request as drivers see it. */
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
