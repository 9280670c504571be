/** Backing requests: how many are missing, and which are not needed any more. Pure functions. */

import {
  isJsonObject,
  LAUNCHING_STATES,
  type BackingPlan,
  type JsonValue,
  type Node,
  type NodeRequest,
} from '@nodepool/core';
import type { BackingSettings } from './config.js';
import { freeSlots, type Backing } from './slots.js';

/** Time for which the record of a request that failed for the last time is retained, milliseconds. */
export const REFUSAL_MS = 30_000;

/** `requestor_data` of a backing request. */
export interface RequestData {
  /** Label of the nodes that wait for the backing node. */
  readonly label: string;
  /** 1 for the first request, one more for each that replaces a failed one. */
  readonly attempt: number;
  /** Slots that the backing node is expected to have, as its creator was configured. */
  readonly slots: number;
}

/** A failed request, with the label whose nodes wait for it. */
export interface FailedRequest {
  readonly request: NodeRequest;
  readonly data: RequestData;
}

/** State of all launchers together, as the records show it. */
export interface DemandState {
  readonly settings: ReadonlyMap<string, BackingSettings>;
  /** Backing nodes that get further nodes. */
  readonly usable: readonly Backing[];
  /** All backing nodes. */
  readonly backings: readonly Backing[];
  readonly users: readonly Node[];
  /** Labels of launches of this process that wait for slots, by node. */
  readonly waiting: ReadonlyMap<string, string>;
  readonly requests: readonly NodeRequest[];
  /** Returns true for a fulfilled request whose node could not be taken over. It counts as no backing node. */
  readonly isStuck: (request: NodeRequest) => boolean;
  /** Returns true if any launcher serves the label. */
  readonly isServed: (label: string) => boolean;
  /** Maximum number of requests in a row that may fail. */
  readonly maxAttempts: number;
  /** Unix milliseconds. */
  readonly now: number;
}

/** Returns the data of a backing request. A request of the Python Nodepool has none. */
export function requestDataOf(
  request: NodeRequest,
  settings: ReadonlyMap<string, BackingSettings>,
): RequestData | undefined {
  const { requestor_data: raw, node_types: labels } = request;
  if (isJsonObject(raw) && typeof raw['label'] === 'string') {
    const { label } = raw;
    return {
      label,
      attempt: numberOf(raw['attempt']) ?? 1,
      slots: numberOf(raw['slots']) ?? settings.get(label)?.slots ?? 1,
    };
  }
  for (const [label, { backingLabel, slots }] of settings) {
    if (labels[0] === backingLabel) return { label, attempt: 1, slots };
  }
  return undefined;
}

function numberOf(value: JsonValue | undefined): number | undefined {
  return typeof value === 'number' && value >= 1 ? value : undefined;
}

/** Returns true if the failed request was the last of its row: it is not replaced at once. */
export function isRefusal(
  { request, data }: FailedRequest,
  { maxAttempts }: Pick<DemandState, 'maxAttempts'>,
): boolean {
  return request.state === 'failed' && data.attempt >= maxAttempts;
}

/**
 * Returns the requests to create and to remove, such that the open requests have exactly as many backing nodes as the
 * launches of all launchers lack. A failed request is replaced by one with the next attempt. The last one of a row is
 * retained for a while: it tells all launchers that the label is refused, and no other is created meanwhile.
 */
export function planRequests(state: DemandState): BackingPlan {
  const plan = { create: [] as BackingPlan['create'][number][], remove: [] as string[] };
  for (const [label, settings] of state.settings) planLabel(label, settings, state, plan);
  for (const request of state.requests) {
    const data = requestDataOf(request, state.settings);
    if (data !== undefined && (state.settings.has(data.label) || state.isServed(data.label))) continue;
    if (request.state !== 'pending') plan.remove.push(request.id);
  }
  return plan;
}

function planLabel(
  label: string,
  { backingLabel, slots }: BackingSettings,
  state: DemandState,
  plan: { readonly create: BackingPlan['create'][number][]; readonly remove: string[] },
): void {
  const own = state.requests.flatMap((request) => {
    const data = requestDataOf(request, state.settings);
    return data?.label === label ? [{ request, data }] : [];
  });
  const failed = own.filter(({ request }) => request.state === 'failed');
  const refusals = failed.filter((each) => isRefusal(each, state));
  const isRefused = refusals.some(({ request }) => state.now < refusedUntil(request));
  const replaced = failed.filter((each) => !isRefusal(each, state));
  for (const { request } of refusals) if (state.now >= refusedUntil(request)) plan.remove.push(request.id);
  for (const { request } of replaced) plan.remove.push(request.id);

  const open = own.filter(({ request }) => request.state !== 'failed');
  const seats = open.filter(({ request }) => !state.isStuck(request));
  // Launchers with other numbers of slots count the slots of a request alike, so none removes what another creates.
  let missing = seats.reduce((rest, { data }) => rest - data.slots, launchesWithoutSlot(label, state));
  missing -= freeOf(label, state);
  const attempts = replaced.map(({ data }) => data.attempt + 1);
  for (let rest = missing; rest > 0 && !isRefused; rest -= slots) {
    plan.create.push({ label: backingLabel, data: { label, attempt: attempts.shift() ?? 1, slots } });
  }
  // A request that a launcher has accepted is left: its node serves the next launches, or is released after its time.
  for (const { request, data } of open.toReversed()) {
    if (request.state !== 'requested' || missing + data.slots > 0) continue;
    plan.remove.push(request.id);
    missing += data.slots;
  }
}

/** Unix milliseconds until which a failed request counts as a refusal. */
export function refusedUntil({ state_time: since }: NodeRequest): number {
  return since * 1000 + REFUSAL_MS;
}

/** Returns the number of launches of a label that have no slot, of all launchers. */
function launchesWithoutSlot(label: string, { users, waiting, backings }: DemandState): number {
  const wanting = new Set<string>();
  for (const [node, wanted] of waiting) if (wanted === label) wanting.add(node);
  for (const { id, type } of unplacedUsers(users, backings)) if (type[0] === label) wanting.add(id);
  return wanting.size;
}

/** Returns the nodes in launch that have no slot, of all launchers. */
export function unplacedUsers(users: readonly Node[], backings: readonly Backing[]): readonly Node[] {
  const placed = new Set<string>();
  for (const { used } of backings) for (const { node } of used.values()) placed.add(node);
  // The launch of a node in the state `init` may still be withdrawn because of limits.
  return users.filter(({ id, state }) => state !== 'init' && LAUNCHING_STATES.includes(state) && !placed.has(id));
}

function freeOf(label: string, { usable }: DemandState): number {
  let free = 0;
  for (const backing of usable) if (backing.data.label === label) free += freeSlots(backing);
  return free;
}
