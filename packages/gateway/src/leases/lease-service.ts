/** The changes of leases that callers ask for. */

import { createHash } from 'node:crypto';
import {
  isJsonObject,
  Slots,
  type Clock,
  type JsonValue,
  type NodeRequestData,
  type RandomSource,
} from '@nodepool/core';
import { newRequestPath, requestCodec } from '@nodepool/store';
import {
  ensurePath,
  isZooKeeperError,
  type CallOptions,
  type TransactionOp,
  type ZooKeeper,
} from '@nodepool/zookeeper';
import type { Grant, Principal } from '../auth/principal.js';
import type { EnsembleClock } from './ensemble-clock.js';
import type { LeaseTable } from './lease-table.js';
import {
  countsNodes,
  expiryOf,
  grantPath,
  REQUESTOR,
  type LeaseEnd,
  type LeaseEntry,
  type LeaseRecord,
  type Outcome,
} from './record.js';

/** A lease to create; everything is checked. */
export interface LeaseSpec {
  /** One node per label. */
  readonly labels: readonly string[];
  readonly name: string | null;
  readonly priority: number;
  readonly tenant: string | null;
  readonly lifetime: number;
  readonly data: JsonValue;
}

/** The grant has too many nodes for another lease. */
export class QuotaError extends Error {
  readonly code = 'quota';
  constructor(grant: Grant, used: number, wanted: number) {
    super(
      `the token may have ${grant.maxNodes} nodes at a time: its leases have ${used}, and this one asks for ${wanted}`,
    );
    this.name = 'QuotaError';
  }
}

/** The idempotency key was used with another body. */
export class KeyReusedError extends Error {
  readonly code = 'key-reused';
  constructor(id: string) {
    super(`the idempotency key has created lease ${id} with another body; use a new key`);
    this.name = 'KeyReusedError';
  }
}

/** The lease is over, so it cannot be renewed or held. */
export class LeaseOverError extends Error {
  readonly code = 'lease-over';
  constructor(id: string, { state, end }: LeaseRecord) {
    super(`lease ${id} is ${state}${end === null ? '' : `: ${end.reason}`}`);
    this.name = 'LeaseOverError';
  }
}

export interface LeaseServiceOptions {
  readonly zooKeeper: ZooKeeper;
  readonly table: LeaseTable;
  readonly time: EnsembleClock;
  readonly clock: Clock;
  readonly random: RandomSource;
}

/** Attempts to create a lease while other gateways create leases of the same grant. */
const MAX_ATTEMPTS = 100;

export class LeaseService {
  /** Creations of limited grants, one at a time, because they exclude each other at the server. */
  private readonly turns = new Map<string, Slots>();

  constructor(private readonly options: LeaseServiceOptions) {}

  /**
   * Creates a lease and its node request. With a key, a lease that an earlier call with the key created is returned
   * instead. Rejects with `QuotaError` and with `KeyReusedError`.
   */
  async create(
    principal: Principal,
    spec: LeaseSpec,
    key: string | undefined,
    options: CallOptions & { readonly signal: AbortSignal },
    traceparent?: string,
  ): Promise<{ readonly entry: LeaseEntry; readonly isNew: boolean }> {
    const { grant, subject } = principal;
    // One subject of an issuer can have the rights of several tenants, which must not meet each other's keys.
    const scope = [subject, grant.tenant, key];
    const id = key === undefined ? this.options.random.uuidHex() : hashOf(scope).slice(0, 32);
    const fingerprint = key === undefined ? null : hashOf(spec);
    const earlier = key === undefined ? undefined : await this.options.table.find(id, options);
    if (earlier !== undefined) return sameLease(earlier, fingerprint);
    const draft = { id, spec, fingerprint, principal, traceparent };
    if (grant.maxNodes === Infinity) return this.attempt(draft, options);
    const turn = this.turns.get(grant.name) ?? new Slots(1);
    this.turns.set(grant.name, turn);
    return turn.run(options.signal, () => this.attempt(draft, options));
  }

  /**
   * Extends a lease, by its own lifetime unless another is given. Rejects with `LeaseOverError` if it is ending or its
   * time has passed. Resolves with undefined if there is no such lease.
   */
  renew(id: string, lifetime: number | undefined, options: CallOptions): Promise<LeaseEntry | undefined> {
    const { table, time } = this.options;
    return table.change(
      id,
      (record) => {
        const expiry = expiryOf(record);
        const renewed = time.now();
        if (expiry === undefined || expiry <= renewed) throw new LeaseOverError(id, record);
        return { renewed, lifetime: lifetime ?? record.lifetime };
      },
      options,
    );
  }

  /**
   * Starts to end a lease; a gateway returns its nodes later. A lease that is over stays as it is, except that the
   * nodes of a held lease are returned.
   */
  release(
    id: string,
    outcome: Outcome | null,
    comment: string | null,
    options: CallOptions,
  ): Promise<LeaseEntry | undefined> {
    const { table, time } = this.options;
    return table.change(
      id,
      (record) => {
        const isHeld = record.end?.reason === 'held';
        if (expiryOf(record) === undefined && !isHeld) return undefined;
        const known = record.end;
        const end = { outcome: outcome ?? known?.outcome ?? null, comment: comment ?? known?.comment ?? null };
        return ending({ reason: 'released', ...end, hold_seconds: null, at: time.now() });
      },
      options,
    );
  }

  /** Starts to end a lease with its nodes held. Rejects with `LeaseOverError` if it has no nodes. */
  hold(
    id: string,
    hold: { readonly seconds: number; readonly outcome: Outcome | null; readonly comment: string | null },
    options: CallOptions,
  ): Promise<LeaseEntry | undefined> {
    const { table, time } = this.options;
    return table.change(
      id,
      (record) => {
        if (record.state !== 'ready') throw new LeaseOverError(id, record);
        const { seconds, outcome, comment } = hold;
        return ending({ reason: 'held', outcome, comment, hold_seconds: seconds, at: time.now() });
      },
      options,
    );
  }

  private async attempt(draft: Draft, options: CallOptions): Promise<{ entry: LeaseEntry; isNew: boolean }> {
    const { zooKeeper, table } = this.options;
    const { id, fingerprint } = draft;
    for (let attempt = 0; ; attempt++) {
      const guard = await this.guard(draft, options);
      const ops = [...guard, ...this.creation(draft)];
      try {
        const results = await zooKeeper.transaction(ops, options);
        const entry = table.created(ops[guard.length], results[guard.length]);
        if (entry !== undefined) return { entry, isNew: true };
      } catch (error) {
        if (!canRepeat(error) || attempt === MAX_ATTEMPTS) throw error;
        if (isZooKeeperError(error, 'no-node')) await this.ensureRoots(options);
        options.signal?.throwIfAborted();
      }
      // The lease exists: an earlier attempt, or a simultaneous request with the same key, has created it.
      const found = await table.read(id, options);
      if (found !== undefined) return sameLease(found, fingerprint);
    }
  }

  /**
   * Returns an operation that fails if another gateway creates a lease of the grant meanwhile. Rejects with
   * `QuotaError` if the grant has too many nodes.
   */
  private async guard(
    { principal: { grant }, spec: { labels } }: Draft,
    options: CallOptions,
  ): Promise<readonly TransactionOp[]> {
    if (grant.maxNodes === Infinity) return [];
    const { zooKeeper, table } = this.options;
    const path = grantPath(grant.name);
    let stat = await zooKeeper.exists(path, options);
    if (stat === undefined) {
      await ensurePath(zooKeeper, path, options);
      stat = await zooKeeper.exists(path, options);
    }
    // The cache then has every lease that was created with this version of the znode or an earlier one.
    await table.settled();
    let used = 0;
    for (const { record } of table.all()) {
      if (record.grant === grant.name && countsNodes(record)) used += record.labels.length;
    }
    if (used + labels.length > grant.maxNodes) throw new QuotaError(grant, used, labels.length);
    return [{ type: 'set', path, data: new Uint8Array(), version: stat?.version ?? 0 }];
  }

  private creation({ id, spec, fingerprint, principal, traceparent }: Draft): readonly TransactionOp[] {
    const { table, time, clock } = this.options;
    const now = time.now();
    const { labels, name, priority, tenant, lifetime, data } = spec;
    const record: Omit<LeaseRecord, 'gateway'> = {
      state: 'waiting',
      ...{ name, labels, priority, tenant, data, lifetime, fingerprint },
      grant: principal.grant.name,
      created_by: principal.subject,
      created: now,
      renewed: now,
      requested: now,
      ...{ ready: null, ended: null, nodes: [], end: null, reasons: [] },
    };
    return [table.createOp(id, record), requestOp(id, record, clock.now() / 1000, traceparent)];
  }

  private async ensureRoots(options: CallOptions): Promise<void> {
    await this.options.table.ensureRoots(options);
    await ensurePath(this.options.zooKeeper, newRequestPath(0).replace(/\/[^/]*$/, ''), options);
  }
}

interface Draft {
  readonly id: string;
  readonly spec: LeaseSpec;
  readonly fingerprint: string | null;
  readonly principal: Principal;
  readonly traceparent: string | undefined;
}

/** Returns the change that starts to end a lease. */
export function ending(end: LeaseEnd, reasons: readonly string[] = []): Partial<LeaseRecord> {
  return { state: 'ending', end, reasons };
}

/** Returns the operation that creates the node request of a lease, in the trace of its client. */
export function requestOp(
  id: string,
  {
    labels,
    priority,
    tenant,
    name,
    created_by: createdBy,
    data,
  }: Pick<LeaseRecord, 'labels' | 'priority' | 'tenant' | 'name' | 'created_by' | 'data'>,
  now: number,
  traceparent?: string,
): TransactionOp {
  const startBy = isJsonObject(data) ? data['start-by'] : undefined;
  const request: NodeRequestData = {
    state: 'requested',
    state_time: now,
    node_types: labels,
    nodes: [],
    declined_by: [],
    decline_reasons: {},
    reuse: true,
    requestor: REQUESTOR,
    requestor_data: {
      lease: id,
      ...{ name, created_by: createdBy, data },
      ...(traceparent === undefined ? {} : { traceparent }),
      ...(startBy === undefined ? {} : { 'start-by': startBy }),
    },
    provider: null,
    relative_priority: 0,
    event_id: id,
    created_time: now,
    tenant_name: tenant,
  };
  return {
    type: 'create',
    path: newRequestPath(priority),
    data: new TextEncoder().encode(requestCodec.create(request)),
    options: { mode: 'persistent-sequential' },
  };
}

function sameLease(entry: LeaseEntry, fingerprint: string | null): { entry: LeaseEntry; isNew: boolean } {
  if (fingerprint !== null && entry.record.fingerprint !== fingerprint) throw new KeyReusedError(entry.id);
  return { entry, isNew: false };
}

function canRepeat(error: unknown): boolean {
  return (['node-exists', 'bad-version', 'no-node', 'outcome-unknown'] as const).some((code) =>
    isZooKeeperError(error, code),
  );
}

/** Returns the SHA-256 of a value with sorted keys, as hexadecimal digits. */
function hashOf(value: unknown): string {
  return createHash('sha256')
    .update(JSON.stringify(sorted(value)))
    .digest('hex');
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([key, each]) => [key, sorted(each)]),
  );
}
