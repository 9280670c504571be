/**
 * Writes the lives of requests and launches as spans: a span per request, below it its waits and the launches of its
 * nodes, and below those the calls to clouds. Used only while tracing is on.
 */

import {
  MIN_READY_REQUESTOR,
  type ApiCall,
  type Clock,
  type Logger,
  type LogFields,
  type Span,
  type Tracing,
} from '@nodepool/core';
import { apiCallSpan } from '@nodepool/daemon';
import type { RequestEntry, Store } from '@nodepool/store';
import type { AttemptResult, LaunchPlace, LaunchStage, TimelineRecorder } from '../facts/timeline-recorder.js';
import type { RequestLife } from '../timeline/request-life.js';
import type { Timelines } from '../timeline/timelines.js';
import { traceOriginIn } from './trace-origin.js';

/** Field of a log that names the node. */
const NODE = 'node_id';

export interface TimelineSpansOptions {
  readonly tracing: Tracing;
  readonly clock: Clock;
  readonly store: Pick<Store, 'requests' | 'nodes'>;
  readonly timelines: Timelines;
}

export class TimelineSpans implements TimelineRecorder {
  private readonly requests = new Map<string, Span>();
  private readonly launches = new Map<string, Span>();
  /** The fields of logs, so that a call names the node that it was made for. */
  private readonly fields = new WeakMap<Logger, LogFields>();

  constructor(private readonly options: TimelineSpansOptions) {}

  /** Starts to write spans. Returns a function that ends that. */
  start(): () => void {
    const { store, timelines } = this.options;
    for (const entry of store.requests.all()) this.requestSeen(entry);
    const ends = [
      store.requests.onChange(({ after }) => {
        if (after !== undefined) this.requestSeen(after);
      }),
      timelines.events.requestEnded.on((life) => this.requestEnded(life)),
      store.nodes.onChange(({ id, after }) => {
        if (after === undefined) this.endLaunch(id, 'the node is deleted');
      }),
    ];
    return () => {
      for (const end of ends) end();
      for (const span of this.launches.values()) span.end(undefined, 'the launcher stops');
      for (const [id, span] of this.requests) {
        if (timelines.request(id)?.pool !== undefined) span.end(undefined, 'the launcher stops');
      }
      this.launches.clear();
      this.requests.clear();
    };
  }

  /** Returns a log whose calls to clouds have spans below the launches of the nodes that it names. */
  watch(log: Logger, fields: LogFields = {}): Logger {
    const watched: Logger = {
      debug: log.debug.bind(log),
      info: log.info.bind(log),
      warn: log.warn.bind(log),
      error: log.error.bind(log),
      with: (more) => this.watch(log.with(more), { ...fields, ...more }),
      named: (name) => this.watch(log.named(name), fields),
    };
    this.fields.set(watched, fields);
    return watched;
  }

  apiCall(provider: string, call: ApiCall): void {
    const node = call.log === undefined ? undefined : this.fields.get(call.log)?.[NODE];
    apiCallSpan(this.options, provider, call, typeof node === 'string' ? this.launches.get(node) : undefined);
  }

  stage(nodeId: string, place: LaunchPlace, stage: LaunchStage, reason?: string): void {
    const { timelines, store, tracing } = this.options;
    timelines.stage(nodeId, place, stage, reason);
    if (this.launches.has(nodeId) || stage === 'launched') return;
    const request = store.nodes.get(nodeId)?.node.allocated_to ?? null;
    const { provider, pool, label } = place;
    const span = tracing.span('launch', {
      at: this.options.clock.now(),
      parent: request === null ? undefined : this.requests.get(request),
      attributes: {
        ...{ 'nodepool.node': nodeId, 'nodepool.provider': provider, 'nodepool.pool': pool, 'nodepool.label': label },
      },
    });
    this.launches.set(nodeId, span);
  }

  attempted(nodeId: string, place: LaunchPlace, result: AttemptResult): void {
    this.options.timelines.attempted(nodeId, place, result);
    const { number, offer, error } = result;
    this.launches.get(nodeId)?.set({ 'nodepool.attempt': number, 'nodepool.offer': offer, 'error.type': error?.code });
    this.endLaunch(nodeId, error?.message);
  }

  readonly waits: TimelineRecorder['waits'] = (...event) => this.options.timelines.waits(...event);
  readonly leaves: TimelineRecorder['leaves'] = (...event) => this.options.timelines.leaves(...event);
  readonly accepting: TimelineRecorder['accepting'] = (...event) => this.options.timelines.accepting(...event);
  readonly settled: TimelineRecorder['settled'] = (...event) => this.options.timelines.settled(...event);
  readonly taken: TimelineRecorder['taken'] = (...event) => this.options.timelines.taken(...event);
  readonly released: TimelineRecorder['released'] = (...event) => this.options.timelines.released(...event);

  private requestSeen({ id, request, source }: RequestEntry): void {
    const isOpen = request.state === 'requested' || request.state === 'pending';
    if (!isOpen || this.requests.has(id) || request.requestor === MIN_READY_REQUESTOR) return;
    const span = this.options.tracing.span('node request', {
      at: (request.created_time ?? request.state_time) * 1000,
      parent: traceOriginIn(source.data),
      attributes: {
        'nodepool.request': id,
        'nodepool.labels': request.node_types,
        'nodepool.tenant': request.tenant_name ?? undefined,
        'nodepool.requestor': request.requestor ?? undefined,
        'nodepool.event': request.event_id ?? undefined,
      },
    });
    this.requests.set(id, span);
  }

  private requestEnded(life: RequestLife): void {
    const { facts, ended, end } = life;
    const span = this.requests.get(facts.id);
    if (span === undefined || ended === undefined) return;
    this.requests.delete(facts.id);
    // Each launcher that has worked on the request writes its part; without any, one does.
    if (!life.isReported && life.pool === undefined) return;
    for (const { phase, from, to, by, detail } of life.closed()) {
      const attributes = { 'nodepool.pool': by, 'nodepool.reason': detail };
      this.options.tracing.span(phase, { at: from, parent: span, attributes }).end(to ?? end);
    }
    span.set({ 'nodepool.result': ended.result, 'nodepool.nodes': ended.nodes });
    span.end(end, ended.result === 'failed' ? (ended.reason ?? 'every pool declined it') : undefined);
  }

  private endLaunch(nodeId: string, failure: string | undefined): void {
    const span = this.launches.get(nodeId);
    this.launches.delete(nodeId);
    span?.end(this.options.clock.now(), failure);
  }
}
