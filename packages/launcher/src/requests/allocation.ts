/** Allocates nodes of a pool to a request: ready nodes, launches to resume, and new nodes, all in the same zone. */

import type { ImageUpload, LabelConfig, NodeRequest, NodeRequestHandler } from '@nodepool/core';
import { QuotaInformation } from '@nodepool/core';
import type { ImageChoice, NodeEntry } from '@nodepool/store';
import type { BlockedOffer } from '../capacity/pool-offers.js';
import type { Offer } from '@nodepool/status';
import { useOf } from '../quota/need.js';
import type { PoolLabels } from '../pool/pool-labels.js';
import type { Pool } from '../pool/pool.js';
import { resumableNodes } from '../deletion/node-lifecycle.js';

/** The node that serves one label of a request. */
export type AllocatedNode =
  | { readonly kind: 'ready'; readonly label: LabelConfig; readonly entry: NodeEntry }
  | {
      readonly kind: 'resumable';
      readonly label: LabelConfig;
      readonly upload: ImageUpload | undefined;
      readonly entry: NodeEntry;
    }
  | {
      readonly kind: 'new';
      readonly label: LabelConfig;
      readonly upload: ImageUpload | undefined;
      /** The part of the node in the trial of an image. Only the first node of a request has one. */
      readonly trial: ImageChoice['trial'];
      readonly offer: Offer;
      readonly need: QuotaInformation;
    };

type ExistingNode = Exclude<AllocatedNode, { kind: 'new' }>;

export interface Allocation {
  /** In the order of the request's labels. */
  readonly nodes: readonly AllocatedNode[];
  readonly zone: string | undefined;
  /** Labels without a ready node in a pool that creates no nodes. The request waits for nodes unless it is empty. */
  readonly missing: readonly string[];
  /** The reason why the new nodes cannot be launched at the moment, or undefined. */
  readonly blocked: BlockedOffer | undefined;
  /** Need of the new nodes. */
  readonly need: QuotaInformation;
  /** Need that counts against the tenant's limit: new nodes, and ready nodes that counted for another tenant. */
  readonly tenantNeed: QuotaInformation;
}

/** The facts that an allocation depends on. */
export interface AllocationContext {
  readonly pool: Pick<Pool, 'context' | 'place' | 'labels' | 'provider' | 'readyNodes' | 'planOffers'>;
  readonly driverHandler: NodeRequestHandler;
  /** Returns true if a ready node is protected for a preceding request, or is being allocated. */
  readonly isProtected: (nodeId: string, request: NodeRequest) => boolean;
  /** Number of usable machine types of each label to skip: there is no capacity for them. */
  readonly skip: number;
}

/** Returns undefined if the pool lacks a label of the request. */
export function allocate(request: NodeRequest, context: AllocationContext): Allocation | undefined {
  if (context.pool.provider.config.createsNodes === false) return allocateReady(request, context);
  const allocation = allocateNodes(request, context);
  if (allocation?.blocked === undefined || !request.reuse) return allocation;
  // Ready nodes are useless in a zone that cannot launch the other nodes.
  const fresh = allocateNodes({ ...request, reuse: false }, context);
  return fresh?.blocked === undefined ? fresh : allocation;
}

function allocateNodes(request: NodeRequest, context: AllocationContext): Allocation | undefined {
  const { labels } = context.pool;
  const taken = new Set<string>();
  const own = nodesOf(request, context);
  let zone = own.find(({ node }) => node.az !== null)?.node.az ?? undefined;
  const wanted: LabelConfig[] = [];
  const existing: (ExistingNode | undefined)[] = [];
  const lacking: string[] = [];
  let handedOver = QuotaInformation.NOTHING;
  for (const name of request.node_types) {
    const label = labels.label(name);
    if (label === undefined) return undefined;
    const found = ownNode(request, own, label, context, taken) ?? readyNode(request, context, label, zone, taken);
    wanted.push(label);
    existing.push(found);
    if (found === undefined) {
      lacking.push(label.name);
      continue;
    }
    taken.add(found.entry.id);
    const { tenant_name: tenant, resources } = found.entry.node;
    if (tenant !== request.tenant_name) handedOver = handedOver.add(useOf(resources));
    zone ??= found.entry.node.az ?? undefined;
  }
  const plan =
    lacking.length === 0
      ? { zone, offers: [], blocked: undefined }
      : context.pool.planOffers(lacking, zone, context.skip);
  const planned = plan.offers[Symbol.iterator]();
  const nodes: AllocatedNode[] = [];
  const trials = new Set<string>();
  let need = QuotaInformation.NOTHING;
  wanted.forEach((label, index) => {
    const node = existing[index] ?? newNode(request, label, planned.next().value, labels, trials);
    if (node === undefined) return;
    nodes.push(node);
    if (node.kind === 'new') need = need.add(node.need);
  });
  const { zone: chosen, blocked } = plan;
  return { nodes, missing: [], zone: chosen, blocked, need, tenantNeed: need.add(handedOver) };
}

/** `trials` are the uploads whose trials have a node of the request. */
function newNode(
  request: NodeRequest,
  label: LabelConfig,
  offer: Offer | undefined,
  labels: PoolLabels,
  trials: Set<string>,
): Extract<AllocatedNode, { kind: 'new' }> | undefined {
  if (offer === undefined) return undefined;
  const need = labels.need(label.name, offer.machineType);
  const { upload, trial } = labels.choose(label, request) ?? {};
  const takesPart = trial !== undefined && !trials.has(trial.upload);
  if (takesPart) trials.add(trial.upload);
  return { kind: 'new', label, upload, trial: takesPart ? trial : undefined, offer, need };
}

export function offersOf({ nodes }: Allocation): Offer[] {
  return nodes.flatMap((node) => (node.kind === 'new' ? [node.offer] : []));
}

/** Returns the resources of all nodes of the request, whether they exist or not. */
export function useOfAll({ nodes, need }: Allocation): QuotaInformation {
  let use = need;
  for (const node of nodes) if (node.kind !== 'new') use = use.add(useOf(node.entry.node.resources));
  return use;
}

/** Returns the nodes of the pool with which the request continues. */
function nodesOf(request: NodeRequest, { pool }: AllocationContext): readonly NodeEntry[] {
  const { place, context } = pool;
  return resumableNodes(context.store, request).filter(
    ({ node, locked }) => !locked && node.provider === place.provider && node.pool === place.pool,
  );
}

/** Returns a node that another launcher allocated to this request earlier. */
function ownNode(
  request: NodeRequest,
  own: readonly NodeEntry[],
  label: LabelConfig,
  { pool }: AllocationContext,
  taken: ReadonlySet<string>,
): ExistingNode | undefined {
  for (const entry of own) {
    if (taken.has(entry.id) || !entry.node.type.includes(label.name)) continue;
    if (entry.node.state === 'ready') return { kind: 'ready', label, entry };
    // A launch that has failed on an upload in its trial continues with the current upload.
    const hasFailed = entry.node.trial?.candidate === true && entry.node.trial.launch === 'failed';
    const upload = pool.labels.choose(label, hasFailed ? undefined : request)?.upload;
    return { kind: 'resumable', label, upload, entry };
  }
  return undefined;
}

function readyNode(
  request: NodeRequest,
  context: AllocationContext,
  label: LabelConfig,
  zone: string | undefined,
  taken: ReadonlySet<string>,
): ExistingNode | undefined {
  for (const entry of readyNodes(request, context, label)) {
    if (taken.has(entry.id)) continue;
    if (zone !== undefined && entry.node.az !== null && entry.node.az !== zone) continue;
    return { kind: 'ready', label, entry };
  }
  return undefined;
}

/** Yields the ready nodes that the request may get for a label. */
function* readyNodes(
  request: NodeRequest,
  { pool, driverHandler, isProtected }: AllocationContext,
  { name: label }: LabelConfig,
): Iterable<NodeEntry> {
  if (!request.reuse) return;
  const { provider, pool: name } = pool.place;
  for (const entry of pool.context.store.nodes.available({ label, provider, pool: name })) {
    if (isProtected(entry.id, request) || !pool.context.store.images.servesRequests(entry.node.image_id)) continue;
    if (driverHandler.checkReusableNode?.(entry.node) === false || !pool.readyNodes.isUsable(entry.node, label))
      continue;
    yield entry;
  }
}

/**
 * Allocates only ready nodes, for a pool that creates no nodes. A node may have several labels, so an earlier choice
 * changes if a later label needs that node (augmenting paths).
 */
function allocateReady(request: NodeRequest, context: AllocationContext): Allocation | undefined {
  const labels = request.node_types.map((name) => context.pool.labels.label(name));
  const own = nodesOf(request, context).filter(({ node }) => node.state === 'ready');
  // For a single label any ready nodes will do; for several labels the assignment may need any of them.
  const enough = new Set(labels).size === 1 ? labels.length : Infinity;
  const candidates = new Map<LabelConfig, readonly NodeEntry[]>();
  for (const label of labels) {
    if (label === undefined) return undefined;
    if (candidates.has(label)) continue;
    const theirs = own.filter(({ node }) => node.type.includes(label.name));
    candidates.set(label, [...theirs, ...first(enough, readyNodes(request, context, label))]);
  }
  /** Index of the label that a node serves, by node id. */
  const serves = new Map<string, number>();
  const chosen: (NodeEntry | undefined)[] = labels.map(() => undefined);
  const choose = (index: number, visited: Set<string>): boolean => {
    const label = labels[index];
    for (const entry of label === undefined ? [] : (candidates.get(label) ?? [])) {
      if (visited.has(entry.id)) continue;
      visited.add(entry.id);
      const other = serves.get(entry.id);
      if (other !== undefined && !choose(other, visited)) continue;
      serves.set(entry.id, index);
      chosen[index] = entry;
      return true;
    }
    return false;
  };
  const missing = request.node_types.filter((_, index) => !choose(index, new Set()));
  const nodes = labels.flatMap((label, index): AllocatedNode[] => {
    const entry = chosen[index];
    return label === undefined || entry === undefined ? [] : [{ kind: 'ready', label, entry }];
  });
  const handedOver = nodes.flatMap((node) => (node.kind === 'ready' ? [node.entry.node] : []));
  const tenantNeed = handedOver
    .filter(({ tenant_name: tenant }) => tenant !== request.tenant_name)
    .reduce((sum, { resources }) => sum.add(useOf(resources)), QuotaInformation.NOTHING);
  return { nodes, missing, zone: undefined, blocked: undefined, need: QuotaInformation.NOTHING, tenantNeed };
}

function* first<T>(count: number, items: Iterable<T>): Iterable<T> {
  let left = count;
  for (const item of items) {
    if (left <= 0) return;
    left -= 1;
    yield item;
  }
}

/** Returns the allocation in words, for explanations. */
export function describeAllocation({ nodes, zone }: Allocation): string {
  const created = nodes.filter(({ kind }) => kind === 'new').length;
  const where = zone === undefined ? '' : ` in ${zone}`;
  return `${nodes.length - created} of its nodes are there, ${created} to be launched${where}`;
}

/** Returns the labels for which no node is ready, for explanations. */
export function describeMissing({ missing }: Allocation): string {
  const counts = new Map<string, number>();
  for (const label of missing) counts.set(label, (counts.get(label) ?? 0) + 1);
  const words = [...counts].map(([label, count]) => `${count} of label ${label}`);
  return `no node is ready for ${words.join(', ')}; all of them are in use or out of service`;
}
