/** The nodes of an accepted request: one slot per label, filled as this launcher locks the nodes. */

import { QuotaInformation, type ImageUpload, type LabelConfig, type NodeData, type NodeRequest } from '@nodepool/core';
import type { AcceptedRequest, NodeEntry, NodeHandle } from '@nodepool/store';
import { useOf } from '../quota/need.js';
import type { Unconfirmed } from '../quota/quota-confirmation.js';
import type { Allocation } from './allocation.js';

export interface Slot {
  readonly label: LabelConfig;
  readonly upload: ImageUpload | undefined;
  /** False if the node was ready when it was allocated. */
  readonly toLaunch: boolean;
  /** The resources and the machine type of a node to launch; undefined for others. */
  readonly planned: { readonly need: QuotaInformation; readonly machineType: string | undefined } | undefined;
  /** The record of a launch to resume. */
  readonly resumed: NodeEntry | undefined;
  /** Owner of a ready node before it was allocated. */
  readonly formerOwner: Pick<NodeData, 'tenant_name' | 'requestor' | 'project'> | undefined;
  /** The node, once its record is locked. */
  node: NodeHandle | undefined;
}

export type HeldSlot = Slot & { readonly node: NodeHandle };

export function isHeld(slot: Slot): slot is HeldSlot {
  return slot.node !== undefined;
}

export interface RecordVersion {
  readonly id: string;
  readonly version: number;
}

/** Returns the slots in the order of the labels; those of ready nodes are filled. */
export function slotsOf({ nodes }: Allocation, reused: readonly NodeHandle[]): Slot[] {
  const ready = reused[Symbol.iterator]();
  return nodes.map((node) => ({
    label: node.label,
    upload: node.kind === 'ready' ? undefined : node.upload,
    toLaunch: node.kind !== 'ready',
    planned: node.kind === 'new' ? { need: node.need, machineType: node.offer.machineType } : undefined,
    resumed: node.kind === 'resumable' ? node.entry : undefined,
    formerOwner: node.kind === 'ready' ? ownerOf(node.entry) : undefined,
    node: node.kind === 'ready' ? ready.next().value : undefined,
  }));
}

/** Returns records for which the cloud was not called yet: new ones, and resumed launches in state `init`. */
export function tentativeRecords(slots: readonly Slot[], created: AcceptedRequest['created']): RecordVersion[] {
  const records = created.map((id) => ({ id, version: 0 }));
  for (const { resumed } of slots) {
    if (resumed?.node.state === 'init') records.push({ id: resumed.id, version: resumed.version });
  }
  return records;
}

/** Returns the part of the request that must be confirmed against the limits. */
export function unconfirmedPart(
  request: NodeRequest,
  slots: readonly Slot[],
  records: readonly RecordVersion[],
): Unconfirmed {
  let lastId = '';
  for (const { id } of records) if (id > lastId) lastId = id;
  let need = QuotaInformation.NOTHING;
  const handedOver: NodeHandle[] = [];
  for (const { toLaunch, planned, resumed, formerOwner, node } of slots) {
    const isTentative = toLaunch && (resumed?.node.state ?? 'init') === 'init';
    if (isTentative) need = need.add(planned?.need ?? useOf(resumed?.node.resources ?? null));
    const isHandedOver = formerOwner !== undefined && formerOwner.tenant_name !== request.tenant_name;
    if (isHandedOver && node !== undefined) handedOver.push(node);
  }
  return { request, lastId, need, handedOver };
}

/** Omits the tenant of an allocated node, because its hand-over from another tenant may never have been confirmed. */
function ownerOf({ node: { tenant_name, requestor, project, allocated_to } }: NodeEntry): Slot['formerOwner'] {
  return { tenant_name: allocated_to === null ? tenant_name : null, requestor, project: project ?? null };
}
