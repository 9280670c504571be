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
import type { Wait } from '../diagnostics/timeline-recorder.js';
import type { Place, QuotaLedger } from '../quota/quota-ledger.js';
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
  /** Reason why requests that another pool can serve are left to it at the moment; undefined if they are not. */
  readonly trouble: string | undefined;
  /** Returns true if the request, which no launcher works on, has nodes in this pool. */
  hasNodesOf(request: NodeRequest): boolean;
  /** Returns the reason why the request cannot be served, now or ever; undefined if it can. */
  obstacle(request: NodeRequest): string | undefined;
  /** Returns what the request waits for before it can be served here; undefined if only for room. */
  waitsFor(request: NodeRequest): Wait | undefined;
  /** Returns true if a zone of the pool can serve the request at the moment. */
  canServe(request: NodeRequest): boolean;
}

/** The labels of a pool: what their nodes need, their images and zones. */
export interface LabelView {
  label(name: string): LabelConfig | undefined;
  need(name: string): QuotaInformation;
  needOf(names: readonly string[]): QuotaInformation;
  /** Returns the upload that nodes of a label with a disk image use. */
  upload(label: LabelConfig): ImageUpload | undefined;
  /** Chooses a zone for nodes of these labels if no other node determines it; undefined leaves it to the cloud. */
  chooseZone(names: readonly string[]): string | undefined;
  /** Returns false if the cloud refuses one of the labels in the zone at the moment. */
  isUsable(names: readonly string[], zone: string | undefined): boolean;
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
