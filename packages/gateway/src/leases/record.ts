/**
 * The record of a lease, `/nodepool/gateway/leases/<id>`: the only state of the gateways. Other programs ignore it.
 *
 * A lease is `waiting` while its node request exists, and `ready` while its nodes are locked for it. Each change of
 * these states is one transaction with the request and the nodes. All changes are compare-and-set on the version.
 */

import { isJsonObject, type JsonObject, type JsonValue } from '@nodepool/core';
import { NODEPOOL_ROOT } from '@nodepool/store';

export const GATEWAY_ROOT = `${NODEPOOL_ROOT}/gateway`;
export const LEASES_ROOT = `${GATEWAY_ROOT}/leases`;
/** Its children change with each lease of a grant that has a limit of nodes. */
export const GRANTS_ROOT = `${GATEWAY_ROOT}/grants`;
/** Gateways write it to learn the time of the ensemble. */
export const CLOCK_PATH = `${GATEWAY_ROOT}/clock`;

/** The requestor of the node requests. */
export const REQUESTOR = 'nodepool-gateway';

export const LEASE_STATES = ['waiting', 'ready', 'ending', 'ended'] as const;
export type LeaseState = (typeof LEASE_STATES)[number];

export const OUTCOMES = ['success', 'failure', 'cancelled', 'unknown'] as const;
export type Outcome = (typeof OUTCOMES)[number];

export const END_REASONS = ['released', 'held', 'expired', 'failed', 'lost', 'cancelled'] as const;
export type EndReason = (typeof END_REASONS)[number];

/** The end of a lease. */
export interface LeaseEnd {
  readonly reason: EndReason;
  readonly outcome: Outcome | null;
  readonly comment: string | null;
  /** Seconds for which the nodes are held; null unless `reason` is `held`. */
  readonly hold_seconds: number | null;
  /** Unix seconds, ensemble time. */
  readonly at: number;
}

/** A node of a lease. */
export interface LeaseNode {
  readonly id: string;
  /** The label of the lease that the node is for. */
  readonly label: string;
  /** Reason why the node is lost; null if it is not. */
  readonly lost: string | null;
}

/** The fields of the JSON. Times are unix seconds of the ensemble, see `EnsembleClock`. */
export interface LeaseRecord {
  readonly state: LeaseState;
  readonly name: string | null;
  /** One node per label. */
  readonly labels: readonly string[];
  readonly priority: number;
  readonly tenant: string | null;
  /** Name of the grant whose limits apply. */
  readonly grant: string;
  /** Subject of the token. */
  readonly created_by: string;
  readonly data: JsonValue;
  /** Seconds from a renewal to the expiry. */
  readonly lifetime: number;
  readonly created: number;
  readonly renewed: number;
  readonly ready: number | null;
  readonly ended: number | null;
  /** Hash of the creating request; null without an idempotency key. */
  readonly fingerprint: string | null;
  readonly nodes: readonly LeaseNode[];
  readonly end: LeaseEnd | null;
  /** Reasons of a failure, as sentences. */
  readonly reasons: readonly string[];
  /** Identifier of the gateway that wrote the record last, which reacts to events before the others. */
  readonly gateway: string;
}

/** A lease as read. */
export interface LeaseEntry {
  readonly id: string;
  readonly record: LeaseRecord;
  /** All fields of the JSON, which later releases may extend. */
  readonly raw: JsonObject;
  readonly version: number;
}

export function leasePath(id: string): string {
  return `${LEASES_ROOT}/${id}`;
}

export function grantPath(grant: string): string {
  return `${GRANTS_ROOT}/${encodeURIComponent(grant)}`;
}

/** Returns the name of the owner of a lease's durable locks. */
export function ownerOf(id: string): string {
  return `lease/${id}`;
}

/** Returns the moment of the expiry, unix seconds; undefined for a lease that is ending. */
export function expiryOf({ state, renewed, lifetime }: LeaseRecord): number | undefined {
  return state === 'waiting' || state === 'ready' ? renewed + lifetime : undefined;
}

/** Returns true if the nodes of a lease count against the limit of its grant. */
export function countsNodes({ state }: LeaseRecord): boolean {
  return state !== 'ended';
}

export function encodeRecord(raw: JsonObject, change: Partial<LeaseRecord>): Uint8Array {
  return new TextEncoder().encode(JSON.stringify({ ...raw, ...change }));
}

/** Returns the entry, or the reason why it cannot be read. */
export function decodeLease(id: string, data: Uint8Array, version: number): LeaseEntry | string {
  let raw: unknown;
  try {
    raw = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(data));
  } catch {
    return 'it is not JSON';
  }
  if (!isJsonObject(raw)) return 'it is not a JSON object';
  const record = recordOf(raw);
  return typeof record === 'string' ? record : { id, record, raw, version };
}

function recordOf(raw: JsonObject): LeaseRecord | string {
  const state = LEASE_STATES.find((each) => each === raw['state']);
  if (state === undefined) return 'its "state" is unknown';
  const labels = textsIn(raw['labels']);
  const created = numberIn(raw['created']);
  const lifetime = numberIn(raw['lifetime']);
  if (labels.length === 0 || created === null || lifetime === null) return 'its labels or times are missing';
  return {
    state,
    name: textIn(raw['name']),
    labels,
    priority: numberIn(raw['priority']) ?? 0,
    tenant: textIn(raw['tenant']),
    grant: textIn(raw['grant']) ?? '',
    created_by: textIn(raw['created_by']) ?? '',
    data: raw['data'] ?? null,
    lifetime,
    created,
    renewed: numberIn(raw['renewed']) ?? created,
    ready: numberIn(raw['ready']),
    ended: numberIn(raw['ended']),
    fingerprint: textIn(raw['fingerprint']),
    nodes: listIn(raw['nodes']).flatMap(nodeIn),
    end: endIn(raw['end']),
    reasons: textsIn(raw['reasons']),
    gateway: textIn(raw['gateway']) ?? '',
  };
}

function nodeIn(value: JsonValue): readonly LeaseNode[] {
  if (!isJsonObject(value)) return [];
  const { id, label, lost } = value;
  return typeof id === 'string' && typeof label === 'string' ? [{ id, label, lost: textIn(lost) }] : [];
}

function endIn(value: JsonValue | undefined): LeaseEnd | null {
  if (!isJsonObject(value)) return null;
  const { outcome, comment, at } = value;
  return {
    reason: END_REASONS.find((each) => each === value['reason']) ?? 'released',
    outcome: OUTCOMES.find((each) => each === outcome) ?? null,
    comment: textIn(comment),
    hold_seconds: numberIn(value['hold_seconds']),
    at: numberIn(at) ?? 0,
  };
}

function textIn(value: JsonValue | undefined): string | null {
  return typeof value === 'string' ? value : null;
}

function numberIn(value: JsonValue | undefined): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

function listIn(value: JsonValue | undefined): readonly JsonValue[] {
  return Array.isArray(value) ? (value as readonly JsonValue[]) : [];
}

function textsIn(value: JsonValue | undefined): readonly string[] {
  return listIn(value).filter((each) => typeof each === 'string');
}
