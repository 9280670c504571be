/**
 * The data of a backing node: a node that a driver divides into slots. Each slot is a node of another label. The data
 * is the JSON text in `user_data`, as the driver `metastatic` of the Python Nodepool writes it, with further keys.
 */

import { isJsonObject, type JsonObject, type JsonValue } from './json.js';
import type { Node, NodeState } from './node.js';

/** The use of a slot. */
export interface SlotUse {
  /** Id of the node that has the slot. */
  readonly node: string;
  /** Launch attempt that received the slot; null if another implementation assigned it. */
  readonly attempt: string | null;
  readonly pool: string | null;
  /** Id of the installation that assigned the slot. */
  readonly installation: string | null;
}

export interface BackingData {
  /** Identifier of the lock of the backing node, e.g. `NodePool:metastatic:<provider>`. */
  readonly owner: string;
  /** Label of the nodes that have the slots. */
  readonly label: string;
  readonly slots: number;
  /** True if the node gets no further slots in use, and is released once it has none. */
  readonly failed: boolean;
  /** Why `failed` is true; null if unknown. */
  readonly reason: string | null;
  /** Unix seconds; null in data of early versions. */
  readonly launched: number | null;
  /** Unix seconds at which the last slot became free; null if unknown, or if the node was never used. */
  readonly idle: number | null;
  /** Slots in use by number, from 0. */
  readonly used: ReadonlyMap<number, SlotUse>;
}

/** Returns the data of a backing node; undefined if `user_data` is something else, or damaged. */
export function parseBackingData(userData: JsonValue): BackingData | undefined {
  const read = readBackingData(userData);
  return typeof read === 'string' ? undefined : read;
}

/** Returns why `user_data` is not the data of a backing node of the owner; undefined if it is. */
export function backingDamage(userData: JsonValue, owner: string): string | undefined {
  const read = readBackingData(userData);
  if (typeof read === 'string') return `its user_data is damaged: ${read}`;
  return read.owner === owner ? undefined : 'its user_data is damaged: it names another owner than the lock';
}

/** Returns true if the data records its slots in use, which that of the Python Nodepool does not. */
export function recordsSlotsInUse(userData: JsonValue): boolean {
  return typeof userData === 'string' && parsed(userData)?.['used'] !== undefined;
}

/** Identifiers of owners: `NodePool:<driver>:<provider>`. */
const OWNER = /^NodePool:[^:]+:(.+)$/;

/** Returns the provider in the identifier of an owner of backing nodes; undefined if it is another identifier. */
export function providerOfBackingOwner(owner: string): string | undefined {
  return OWNER.exec(owner)?.[1];
}

/** States in which a node can be divided into slots. */
const DIVIDED_STATES: readonly NodeState[] = ['in-use', 'hold', 'used'];

/**
 * Returns the owners that the record of a node names, those of a backing node only: its requestor, and the owner in
 * `user_data`. They differ only if the data is damaged. Only the lock of the node proves who owns it.
 */
export function backingOwnersOf({
  user_data: data,
  requestor,
  state,
}: Pick<Node, 'user_data' | 'requestor' | 'state'>): readonly string[] {
  const owners = new Set<string>();
  const isOwner = requestor !== null && providerOfBackingOwner(requestor) !== undefined;
  if (isOwner && DIVIDED_STATES.includes(state)) owners.add(requestor);
  const parsed = parseBackingData(data);
  if (parsed !== undefined) owners.add(parsed.owner);
  return [...owners];
}

/** Returns the data, or a description of its damage. */
function readBackingData(userData: JsonValue): BackingData | string {
  if (userData === null) return 'it is empty';
  const raw = typeof userData === 'string' ? parsed(userData) : undefined;
  if (raw === undefined) return 'it is not the JSON text of a backing node';
  const { owner, label, slots, failed, reason, launched, idle, used } = raw;
  if (typeof owner !== 'string') return 'it names no owner';
  if (typeof label !== 'string') return 'it names no label';
  if (!isCount(slots)) return 'its number of slots cannot be read';
  const uses = usesOf(used);
  if (uses === undefined) return 'its slots in use cannot be read';
  return {
    owner,
    label,
    slots,
    failed: failed === true,
    reason: textOf(reason),
    launched: timeOf(launched),
    idle: timeOf(idle),
    used: uses,
  };
}

/** Returns the text for `user_data`. The keys of the Python Nodepool come first. */
export function printBackingData({ owner, label, slots, failed, launched, reason, idle, used }: BackingData): string {
  const uses = [...used].sort(([a], [b]) => a - b).map(([slot, use]) => [String(slot), use]);
  return JSON.stringify({
    owner,
    label,
    slots,
    failed,
    launched,
    reason,
    idle,
    used: Object.fromEntries(uses) as object,
  });
}

/** The place of a node on a backing node. */
export interface SlotPlace {
  readonly backingNode: string;
  readonly slot: number;
}

/** Returns the slot in the `driver_data` of a node; undefined if the node has none. */
export function slotPlaceOf({ driver_data: data }: Pick<Node, 'driver_data'>): SlotPlace | undefined {
  if (!isJsonObject(data)) return undefined;
  const { backing_node: backingNode, slot } = data;
  return typeof backingNode === 'string' && isCount(slot) ? { backingNode, slot } : undefined;
}

/**
 * Returns the slots in use of a backing node. The Python Nodepool records them only in the nodes that have them:
 * `users` are the nodes whose `driver_data` names this backing node.
 */
export function slotsInUse(data: Pick<BackingData, 'used'>, users: Iterable<Node>): ReadonlyMap<number, SlotUse> {
  const all = new Map(data.used);
  for (const user of users) {
    const place = slotPlaceOf(user);
    if (place === undefined || all.has(place.slot)) continue;
    if ([...all.values()].some(({ node }) => node === user.id)) continue;
    all.set(place.slot, { node: user.id, attempt: null, pool: user.pool, installation: null });
  }
  return all;
}

function parsed(text: string): JsonObject | undefined {
  // Most requestors store other data, which is parsed only if it can be that of a backing node.
  if (!text.startsWith('{') || !text.includes('"owner"')) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return isJsonObject(value) ? value : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Returns undefined if the slots in use cannot be read. The Python Nodepool does not record them here. */
function usesOf(raw: JsonValue | undefined): ReadonlyMap<number, SlotUse> | undefined {
  const uses = new Map<number, SlotUse>();
  if (raw === undefined) return uses;
  if (!isJsonObject(raw)) return undefined;
  for (const [key, use] of Object.entries(raw)) {
    const slot = Number(key);
    if (!isCount(slot) || !isJsonObject(use) || typeof use['node'] !== 'string') return undefined;
    const [node, attempt] = [use['node'], textOf(use['attempt'])];
    uses.set(slot, { node, attempt, pool: textOf(use['pool']), installation: textOf(use['installation']) });
  }
  return uses;
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0;
}

function textOf(value: JsonValue | undefined): string | null {
  return typeof value === 'string' ? value : null;
}

/** Returns null for 0, which early versions of the Python Nodepool assume for a missing time. */
function timeOf(value: JsonValue | undefined): number | null {
  return typeof value === 'number' && value > 0 ? value : null;
}
