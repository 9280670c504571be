/** Which nodes a request gets in a pool: ready ones, launches to go on with, and new ones. All in one zone. */

import {
  QuotaInformation,
  type ImageUpload,
  type LabelConfig,
  type NodeRequest,
  type NodeRequestHandler,
} from '@nodepool/core';
import type { NodeEntry, NodeStore } from '@nodepool/store';
import { useOf } from '../quota/quota-scope.js';

/** What serves one label of the request. */
export type Part =
  | { readonly kind: 'ready'; readonly label: LabelConfig; readonly entry: NodeEntry }
  | {
      readonly kind: 'resume';
      readonly label: LabelConfig;
      readonly upload: ImageUpload | undefined;
      readonly entry: NodeEntry;
    }
  | { readonly kind: 'launch'; readonly label: LabelConfig; readonly upload: ImageUpload | undefined };

export interface Assignment {
  /** In the order of the request's labels. */
  readonly parts: readonly Part[];
  readonly zone: string | undefined;
  /** What is to be launched needs this. */
  readonly need: QuotaInformation;
  /** The tenant's limit must hold this: what is launched, and ready nodes that counted for another tenant. */
  readonly tenantNeed: QuotaInformation;
}

/** The pool, as far as an assignment depends on it. */
export interface AssigningPool {
  readonly providerName: string;
  readonly poolName: string;
  readonly nodes: NodeStore;
  label(name: string): LabelConfig | undefined;
  need(label: string): QuotaInformation;
  upload(label: LabelConfig): ImageUpload | undefined;
  /** Returns true if a ready node is promised to another request that comes before this one, or is being handed out. */
  claimed(nodeId: string, request: NodeRequest): boolean;
  /** A zone for nodes of these labels that no other node determines; undefined: the cloud chooses. */
  chooseZone(labels: readonly string[]): string | undefined;
  /** False if the cloud refuses one of the labels in the zone at the moment. */
  isUsable(labels: readonly string[], zone: string | undefined): boolean;
}

const RESUMABLE: ReadonlySet<string> = new Set(['init', 'building', 'testing']);

/** Undefined when the pool does not have a label of the request (any more). */
export function assign(request: NodeRequest, pool: AssigningPool, handler: NodeRequestHandler): Assignment | undefined {
  const assignment = assignIn(request, pool, handler);
  const launches = (assignment?.parts ?? []).filter(({ kind }) => kind === 'launch').map(({ label }) => label.name);
  if (launches.length === 0 || pool.isUsable(launches, assignment?.zone)) return assignment;
  // Ready nodes in a zone that refuses the others are of no use.
  return assignIn({ ...request, reuse: false }, pool, handler);
}

function assignIn(request: NodeRequest, pool: AssigningPool, handler: NodeRequestHandler): Assignment | undefined {
  const taken = new Set<string>();
  const own = nodesOf(request, pool);
  let zone = own.find(({ node }) => node.az !== null)?.node.az ?? undefined;
  const parts: Part[] = [];
  let need = QuotaInformation.use({});
  let handedOver = QuotaInformation.use({});
  for (const name of request.node_types) {
    const label = pool.label(name);
    if (label === undefined) return undefined;
    const part = ownNode(own, label, pool, taken) ?? readyNode(request, pool, handler, label, zone, taken);
    if (part === undefined) {
      parts.push({ kind: 'launch', label, upload: pool.upload(label) });
      need = need.add(pool.need(name));
      continue;
    }
    taken.add(part.entry.id);
    const { tenant_name: tenant, resources } = part.entry.node;
    if (tenant !== request.tenant_name) handedOver = handedOver.add(useOf(resources));
    zone ??= part.entry.node.az ?? undefined;
    parts.push(part);
  }
  return { parts, zone: zone ?? pool.chooseZone(request.node_types), need, tenantNeed: need.add(handedOver) };
}

/** Nodes that the request has. Launches of one that was given back are on their way out. */
function nodesOf(request: NodeRequest, { nodes, providerName, poolName }: AssigningPool): readonly NodeEntry[] {
  return nodes.allocatedTo(request.id).filter(({ node, locked }) => {
    const isHere = !locked && node.provider === providerName && node.pool === poolName;
    return isHere && (node.state === 'ready' || request.state === 'pending');
  });
}

/** A node that an earlier handler of this request had. */
function ownNode(
  own: readonly NodeEntry[],
  label: LabelConfig,
  pool: AssigningPool,
  taken: ReadonlySet<string>,
): Exclude<Part, { kind: 'launch' }> | undefined {
  for (const entry of own) {
    if (taken.has(entry.id) || !entry.node.type.includes(label.name)) continue;
    if (entry.node.state === 'ready') return { kind: 'ready', label, entry };
    if (RESUMABLE.has(entry.node.state)) return { kind: 'resume', label, upload: pool.upload(label), entry };
  }
  return undefined;
}

function readyNode(
  request: NodeRequest,
  pool: AssigningPool,
  handler: NodeRequestHandler,
  label: LabelConfig,
  zone: string | undefined,
  taken: ReadonlySet<string>,
): Exclude<Part, { kind: 'launch' }> | undefined {
  if (!request.reuse) return undefined;
  const query = { label: label.name, provider: pool.providerName, pool: pool.poolName };
  for (const entry of pool.nodes.available(query)) {
    if (taken.has(entry.id) || pool.claimed(entry.id, request)) continue;
    if (zone !== undefined && entry.node.az !== null && entry.node.az !== zone) continue;
    if (handler.checkReusableNode?.(entry.node) === false) continue;
    return { kind: 'ready', label, entry };
  }
  return undefined;
}

/** What the request gets, for explanations. */
export function inWords({ parts, zone }: Assignment): string {
  const launches = parts.filter((part) => part.kind === 'launch').length;
  const where = zone === undefined ? '' : ` in ${zone}`;
  return `${parts.length - launches} of its nodes are there, ${launches} to be launched${where}`;
}
