/** The operations of the API. */

import type { Logger } from '@nodepool/core';
import type { LeaseDocument, LeaseState, NewLease } from '@nodepool/requestor/http';
import type { CallOptions } from '@nodepool/zookeeper';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { mayAccess, mayUseLabel, type Principal } from '../auth/principal.js';
import {
  KeyReusedError,
  LeaseOverError,
  QuotaError,
  type LeaseService,
  type LeaseSpec,
} from '../leases/lease-service.js';
import type { LeaseTable } from '../leases/lease-table.js';
import type { LeaseEntry, Outcome } from '../leases/record.js';
import { API_DESCRIPTION, bodyCheck, queryCheck } from './api-description.js';
import type { EventStreams } from './event-streams.js';
import { leaseDocument, type DocumentSources } from './lease-document.js';
import { ProblemError } from './problems.js';

export interface LeaseRoutesOptions {
  readonly table: LeaseTable;
  readonly service: LeaseService;
  readonly sources: DocumentSources;
  readonly streams: EventStreams;
  /** Log of changes. */
  readonly audit: Logger;
  /** Default lifetime of a lease, seconds. */
  readonly defaultLifetime: () => number;
  /** Returns the authenticated caller of a request. */
  readonly principalOf: (request: FastifyRequest) => Principal;
  /** Aborts when the gateway stops. */
  readonly stopping: AbortSignal;
}

/** Time limit of the calls to ZooKeeper of one request, in milliseconds. */
const CALL_TIMEOUT_MS = 8000;
const MAX_NODES = 1000;
/** Nesting of `data` that every reader of the lease and of the node request can parse. */
const MAX_NESTING = 100;
const ID = /^[0-9a-f]{32}$/;

const checkNewLease = bodyCheck<NewLease>('NewLease');
const checkRenewal = bodyCheck<{ readonly lifetime?: number }>('Renewal');
const checkHold = bodyCheck<{ readonly seconds: number; readonly outcome?: Outcome; readonly comment?: string }>(
  'Hold',
);
const checkRelease = queryCheck<{ readonly outcome?: Outcome; readonly comment?: string }>('releaseLease');
const checkList = queryCheck<ListQuery>('listLeases');

interface ListQuery {
  readonly state?: LeaseState;
  readonly name?: string;
  readonly limit: number;
  readonly after?: string;
}

export function addLeaseRoutes(app: FastifyInstance, options: LeaseRoutesOptions): void {
  const routes = new LeaseRoutes(options);
  app.get('/v1/openapi.json', { config: { operation: 'getDescription' } }, (_request, reply) =>
    reply.send(API_DESCRIPTION),
  );
  app.post('/v1/leases', { config: { operation: 'createLease' } }, routes.create);
  app.get('/v1/leases', { config: { operation: 'listLeases' } }, routes.list);
  app.get('/v1/leases/:id', { config: { operation: 'getLease' } }, routes.get);
  app.delete('/v1/leases/:id', { config: { operation: 'releaseLease' } }, routes.release);
  app.get('/v1/leases/:id/events', { config: { operation: 'followLease' } }, routes.follow);
  app.put('/v1/leases/:id/renew', { config: { operation: 'renewLease' } }, routes.renew);
  app.post('/v1/leases/:id/hold', { config: { operation: 'holdLease' } }, routes.hold);
  app.get('/v1/labels', { config: { operation: 'listLabels' } }, routes.labels);
}

class LeaseRoutes {
  constructor(private readonly options: LeaseRoutesOptions) {}

  readonly create = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const principal = this.options.principalOf(request);
    const spec = this.specOf(checkNewLease(request.body), principal);
    const { entry, isNew } = await this.call(() =>
      this.options.service.create(principal, spec, keyOf(request), this.callOptions(), traceOf(request)),
    );
    if (!mayAccess(principal, entry.record)) throw notFound();
    this.audit(request, isNew ? 'created' : 'created again', entry);
    return reply
      .code(isNew ? 201 : 200)
      .header('Location', `/v1/leases/${entry.id}`)
      .send(this.document(entry));
  };

  readonly list = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const principal = this.options.principalOf(request);
    const { state, name, limit, after } = checkList(request.query);
    const visible = [...this.options.table.all()].filter(
      ({ record }) =>
        mayAccess(principal, record) &&
        (state === undefined || record.state === state) &&
        (name === undefined || record.name === name),
    );
    const ordered = visible
      .map((entry) => ({ cursor: cursorOf(entry), entry }))
      .sort((a, b) => (a.cursor < b.cursor ? 1 : -1));
    const rest = after === undefined ? ordered : ordered.filter(({ cursor }) => cursor < after);
    const page = rest.slice(0, limit);
    const next = rest.length > page.length ? (page.at(-1)?.cursor ?? null) : null;
    return reply.send({ leases: page.map(({ entry }) => this.document(entry)), next });
  };

  readonly get = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> =>
    reply.send(this.document(await this.find(request)));

  readonly release = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const { outcome = null, comment = null } = checkRelease(request.query);
    const { id } = await this.find(request);
    const entry = given(await this.call(() => this.options.service.release(id, outcome, comment, this.callOptions())));
    this.audit(request, 'released', entry);
    return reply.code(entry.record.state === 'ended' ? 200 : 202).send(this.document(entry));
  };

  readonly renew = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const { lifetime } = checkRenewal(request.body ?? {});
    checkLifetime(this.options.principalOf(request), lifetime);
    const { id } = await this.find(request);
    const entry = given(await this.call(() => this.options.service.renew(id, lifetime, this.callOptions())));
    this.audit(request, 'renewed', entry);
    return reply.send(this.document(entry));
  };

  readonly hold = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const { seconds, outcome = null, comment = null } = checkHold(request.body);
    checkLifetime(this.options.principalOf(request), seconds);
    const { id } = await this.find(request);
    const entry = given(
      await this.call(() => this.options.service.hold(id, { seconds, outcome, comment }, this.callOptions())),
    );
    this.audit(request, 'held', entry);
    return reply.code(202).send(this.document(entry));
  };

  readonly follow = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const { streams, principalOf, table } = this.options;
    const { subject } = principalOf(request);
    const found = await this.find(request);
    streams.checkLimits(subject);
    // The socket belongs to the stream from here on.
    reply.hijack();
    let isCached = false;
    const read = (): LeaseDocument | undefined => {
      const entry = table.get(found.id);
      isCached ||= entry !== undefined;
      if (entry !== undefined) return this.document(entry);
      // A lease that another gateway has just created is not in the cache yet.
      return isCached ? undefined : this.document(found);
    };
    streams.open(subject, { id: found.id, read }, reply.raw);
  };

  readonly labels = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const { grant } = this.options.principalOf(request);
    const offered = new Set(
      [...this.options.sources.store.components.pools()].flatMap((pool) => pool.supported_labels),
    );
    return reply.send({ labels: [...offered].filter((label) => mayUseLabel(grant, label)).sort() });
  };

  private document(entry: LeaseEntry): LeaseDocument {
    return leaseDocument(this.options.sources, entry);
  }

  /** Resolves with the lease of the path. Rejects alike if it does not exist and if the caller may not see it. */
  private async find(request: FastifyRequest): Promise<LeaseEntry> {
    const { id } = request.params as { readonly id: string };
    if (!ID.test(id)) throw notFound();
    const entry = await this.call(() => this.options.table.find(id, this.callOptions()));
    if (entry === undefined || !mayAccess(this.options.principalOf(request), entry.record)) throw notFound();
    return entry;
  }

  private specOf(
    { labels, count = 1, name, priority, tenant, lifetime, data }: NewLease,
    principal: Principal,
  ): LeaseSpec {
    const { grant } = principal;
    const refused = labels.find((label) => !mayUseLabel(grant, label));
    if (refused !== undefined) throw new ProblemError('forbidden', `the token does not permit the label ${refused}`);
    const { min, max, default: standard } = grant.priorities;
    if (priority !== undefined && (priority < min || priority > max)) {
      throw new ProblemError('forbidden', `the token permits priorities from ${min} to ${max}`);
    }
    if (tenant !== undefined && tenant !== grant.tenant) {
      throw new ProblemError('forbidden', 'the token does not permit this tenant');
    }
    checkLifetime(principal, lifetime);
    const wanted = labels.flatMap((label) => Array.from({ length: count }, () => label));
    if (wanted.length > MAX_NODES) {
      throw new ProblemError('bad-request', `a lease has at most ${MAX_NODES} nodes`);
    }
    if (isDeeper(data, MAX_NESTING)) {
      throw new ProblemError('bad-request', `the body/data has more than ${MAX_NESTING} levels`);
    }
    return {
      labels: wanted,
      name: name ?? null,
      priority: priority ?? standard,
      tenant: grant.tenant,
      lifetime: lifetime ?? Math.min(this.options.defaultLifetime(), grant.maxLifetime),
      data: data ?? null,
    };
  }

  private callOptions(): CallOptions & { readonly signal: AbortSignal } {
    return { timeoutMs: CALL_TIMEOUT_MS, signal: this.options.stopping };
  }

  /** Converts the errors of leases to problems. */
  private async call<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof QuotaError) throw new ProblemError('quota', error.message, { retryAfter: 30, cause: error });
      if (error instanceof KeyReusedError) throw new ProblemError('key-reused', error.message, { cause: error });
      if (error instanceof LeaseOverError) throw new ProblemError('conflict', error.message, { cause: error });
      throw error;
    }
  }

  private audit(request: FastifyRequest, action: string, { id, record }: LeaseEntry): void {
    const { subject } = this.options.principalOf(request);
    this.options.audit.info('Lease changed', {
      action,
      lease: id,
      subject,
      tenant: record.tenant,
      remote: request.ip,
      state: record.state,
      nodes: record.labels.length,
      request: request.id,
    });
  }
}

function keyOf(request: FastifyRequest): string | undefined {
  const key = request.headers['idempotency-key'];
  if (key === undefined) return undefined;
  if (typeof key !== 'string' || key.length === 0 || key.length > 255) {
    throw new ProblemError('bad-request', 'the header Idempotency-Key must have 1 to 255 characters');
  }
  return key;
}

/** Format of the W3C trace context, version 00. */
const TRACEPARENT = /^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;

/** Returns the trace of the client; undefined if the header is missing or wrong, as the standard demands. */
function traceOf({ headers: { traceparent } }: FastifyRequest): string | undefined {
  return typeof traceparent === 'string' && TRACEPARENT.test(traceparent) ? traceparent : undefined;
}

/** Returns true if objects and arrays in the value are nested in more than this number of levels. */
function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((each) => isDeeper(each, levels - 1));
}

function checkLifetime({ grant }: Principal, seconds: number | undefined): void {
  if (seconds === undefined || seconds <= grant.maxLifetime) return;
  throw new ProblemError('forbidden', `the token permits at most ${grant.maxLifetime} seconds`);
}

/** Returns a text whose order is that of creation. */
function cursorOf({ id, record }: LeaseEntry): string {
  return `${record.created.toFixed(3).padStart(15, '0')}-${id}`;
}

function given(entry: LeaseEntry | undefined): LeaseEntry {
  if (entry === undefined) throw notFound();
  return entry;
}

function notFound(): ProblemError {
  return new ProblemError('not-found', 'there is no such lease, or the token does not permit to see it');
}
