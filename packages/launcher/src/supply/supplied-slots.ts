/** The slots of supplied machines, and the records that occupy them. */

import { isDeepStrictEqual } from 'node:util';
import type { MachineFacts, Node, NodeData, PoolConfig, SuppliedMachine } from '@nodepool/core';
import type { NodeEntry } from '@nodepool/store';

/** End of the `launcher` of records of supplied machines, as the Python Nodepool writes it. */
const DRIVER_SUFFIX = ' driver';

/** Node records by machine and slot. */
export interface SlotTable {
  /** By `machineKey`; undefined for a slot without a record. */
  readonly slots: ReadonlyMap<string, readonly (NodeEntry | undefined)[]>;
  /** Records without a slot of a machine, and records whose slot another record occupies. */
  readonly surplus: readonly NodeEntry[];
}

/** Returns the identity of a machine within its provider. */
export function machineKey({ hostname, connection }: Pick<SuppliedMachine, 'hostname' | 'connection'>): string {
  return JSON.stringify([hostname, connection.username, connection.port]);
}

/** Returns the identity of the machine that a record names. */
export function machineKeyOf({ hostname, username, connection_port: port }: Node): string {
  return JSON.stringify([hostname, username, port]);
}

/**
 * Returns true for the record of a supplied machine. Instances of some clouds look the same, so use it only for
 * providers that create no nodes.
 */
export function isSupplied({ hostname, external_id: externalId }: Node): boolean {
  return hostname !== null && externalId === hostname;
}

/**
 * Returns true for the record of a supplied machine of any provider: its `launcher` names the driver, and that of an
 * instance names a launcher.
 */
export function isSuppliedByDriver(node: Node): boolean {
  return isSupplied(node) && node.launcher?.endsWith(DRIVER_SUFFIX) === true;
}

/** Returns true if the node is allocated to no request and held by no user. */
export function isFree({ node, locked }: NodeEntry): boolean {
  return node.state === 'ready' && node.allocated_to === null && !locked;
}

/**
 * Returns true if a job may run on the machine of a node. An unlocked node that is `used` or `deleting` runs none, but
 * its record may stay: launchers do not delete nodes of a provider that is no longer configured.
 */
export function mayRunJob({ node, locked }: NodeEntry): boolean {
  const isAllocated = node.state === 'ready' && node.allocated_to !== null;
  return locked || isAllocated || node.state === 'in-use' || node.state === 'hold';
}

/** Returns the other records of the same slot, which another program has registered at the same time. */
export function twinsOf(node: Node, records: readonly NodeEntry[]): NodeEntry[] {
  const key = machineKeyOf(node);
  const isTwin = ({ id, node: other }: NodeEntry): boolean =>
    id !== node.id && other.state !== 'deleted' && other.slot === node.slot && machineKeyOf(other) === key;
  return node.slot === null ? [] : records.filter(isTwin);
}

/** Assigns the records of a host to the slots of its machines. */
export function assignSlots(machines: readonly SuppliedMachine[], records: readonly NodeEntry[]): SlotTable {
  const slots = new Map(machines.map((machine) => [machineKey(machine), emptySlots(machine.slots)] as const));
  const surplus: NodeEntry[] = [];
  // Used records come first: if a slot has a used and a free record, the free one becomes surplus.
  const occupants = records.filter(({ node }) => node.state !== 'deleted').sort(byUse);
  for (const entry of occupants) if (!place(entry, slots.get(machineKeyOf(entry.node)))) surplus.push(entry);
  // A node registered with earlier settings of its host occupies its slot until it is removed.
  for (const entry of surplus) {
    const { slot } = entry.node;
    const former = !slots.has(machineKeyOf(entry.node)) && slot !== null;
    const blocked = former ? [...slots.values()].find((own) => slot in own && own[slot] === undefined) : undefined;
    if (blocked !== undefined && slot !== null) blocked[slot] = entry;
  }
  return { slots, surplus };
}

/** Records of older versions have no slot; they get the first vacant one. */
function place(entry: NodeEntry, own: (NodeEntry | undefined)[] | undefined): boolean {
  if (own === undefined) return false;
  const slot = entry.node.slot ?? own.indexOf(undefined);
  if (!(slot in own) || own[slot] !== undefined) return false;
  own[slot] = entry;
  return true;
}

function emptySlots(count: number): (NodeEntry | undefined)[] {
  return Array.from({ length: count }, () => undefined);
}

function byUse(a: NodeEntry, b: NodeEntry): number {
  const slotted = Number(a.node.slot === null) - Number(b.node.slot === null);
  return slotted || Number(isFree(a)) - Number(isFree(b)) || (a.id < b.id ? -1 : 1);
}

/** Input for a record of a machine. */
export interface MachineRecord {
  readonly provider: string;
  readonly driver: string;
  readonly pool: PoolConfig;
  readonly machine: SuppliedMachine;
  readonly facts: MachineFacts;
  readonly slot: number;
}

/** Returns the fields of a record that are derived from the configuration and the machine. */
function settings({ pool, machine, facts, slot }: MachineRecord) {
  const { connection } = machine;
  return {
    pool: pool.name,
    type: machine.labels,
    connection_type: connection.type,
    python_path: connection.pythonPath,
    shell_type: connection.shellType,
    host_keys: facts.hostKeys,
    public_ipv4: facts.publicIpv4 ?? null,
    public_ipv6: facts.publicIpv6 ?? null,
    attributes: Object.keys(pool.nodeAttributes).length === 0 ? null : pool.nodeAttributes,
    slot,
  } satisfies Partial<NodeData>;
}

/** Returns the change that makes a record match its machine; undefined if it matches. */
export function changeOf(node: Node, record: MachineRecord): Partial<NodeData> | undefined {
  const change = changed(node, settings(record));
  return Object.keys(change).length === 0 ? undefined : change;
}

/** Returns the part of the change that the latest check of the machine causes; the rest is the configuration. */
export function changedFacts(node: Node, record: MachineRecord): Partial<NodeData> {
  const { host_keys, public_ipv4, public_ipv6 } = settings(record);
  return changed(node, { host_keys, public_ipv4, public_ipv6 });
}

/** Returns the fields that differ from those of the node. */
function changed(node: Node, wanted: Partial<NodeData>): Partial<NodeData> {
  const fields = Object.entries(wanted) as [keyof NodeData, NodeData[keyof NodeData]][];
  return Object.fromEntries(
    fields.filter(([field, value]) => !isDeepStrictEqual(ordered(field, node[field]), ordered(field, value))),
  );
}

/** Sorts host keys, because their order has no meaning. */
function ordered(field: keyof NodeData, value: unknown): unknown {
  return field === 'host_keys' && Array.isArray(value) ? [...(value as string[])].sort() : value;
}

/** Returns the record of a ready node, with the contents that the Python Nodepool writes for its static nodes. */
export function suppliedNode(record: MachineRecord, now: number): NodeData {
  const { hostname, connection } = record.machine;
  return {
    ...settings(record),
    state: 'ready',
    state_time: now,
    created_time: now,
    provider: record.provider,
    launcher: `${record.driver}${DRIVER_SUFFIX}`,
    external_id: hostname,
    hostname,
    interface_ip: hostname,
    username: connection.username,
    connection_port: connection.port,
    allocated_to: null,
    az: null,
    cloud: null,
    comment: null,
    driver_data: null,
    hold_expiration: null,
    hold_job: null,
    host_id: null,
    image_id: null,
    interruption: null,
    machine_type: null,
    private_ipv4: null,
    progress: null,
    region: null,
    requestor: null,
    resources: null,
    tenant_name: null,
    user_data: null,
  };
}
