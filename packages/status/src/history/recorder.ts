/** Timelines, history and numbers of nodes of a launcher, with the journal that preserves the former two. */

import { reasonOf, type Clock, type JsonObject, type Logger, type Metrics } from '@nodepool/core';
import { ZooKeeperWatch } from '@nodepool/daemon';
import type { Store } from '@nodepool/store';
import type { ProviderActivity, ProviderSummary } from '../facts/activity.js';
import { watchApiCalls } from './api-watch.js';
import { HistoryBucket, isObject } from './history-bucket.js';
import { History } from './history.js';
import { Journal } from './journal.js';
import { compressed, CompressedLines } from './compressed-lines.js';
import { headerLine, nodeLine, providerLine, requestLine } from './journal-lines.js';
import { decodeNode, decodeRequest, encodeNode, encodeRequest } from './life-codec.js';
import { CostMeter } from '../metrics/cost-meter.js';
import { reportCosts } from '../metrics/cost-metrics.js';
import { NodeTally } from '../metrics/node-tally.js';
import { reportPhases } from '../metrics/phase-metrics.js';
import { ProviderEvents } from './provider-events.js';
import { ProviderFailures } from './provider-failures.js';
import { NodeLife } from '../timeline/node-life.js';
import type { RequestLife } from '../timeline/request-life.js';
import { Timelines, type TimelineOptions } from '../timeline/timelines.js';

/** Age (ms) from which on ended lives are not restored. */
const MAX_AGE_MS = 25 * 3_600_000;
/** Limit (compressed bytes) of the exported journal, about 300,000 requests. */
const MAX_EXPORT_BYTES = 24_000_000;

const NO_PROVIDERS: ReadonlyMap<string, { readonly section: JsonObject }> = new Map();

export interface RecorderOptions {
  readonly store: Pick<Store, 'requests' | 'nodes' | 'components' | 'complete' | 'onComplete' | 'zooKeeper'>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly activity: () => readonly ProviderActivity[];
  /** Returns the parts of the activities that cost little. Default: `activity`. */
  readonly summaries?: () => readonly ProviderSummary[];
  /** Directory of the journal; without it the history is lost at a restart. */
  readonly stateDir: string | undefined;
  /** Returns the sections of the providers, for prices. Default: none has prices. */
  readonly providers?: () => ReadonlyMap<string, { readonly section: JsonObject }>;
  /** See `TimelineOptions`. */
  readonly reports?: TimelineOptions['reports'];
}

export class Recorder {
  readonly timelines: Timelines;
  readonly history: History;
  readonly failures: ProviderFailures;
  readonly providerEvents: ProviderEvents;
  readonly zooKeeper: ZooKeeperWatch;
  readonly nodes: NodeTally;
  readonly costs: CostMeter;
  /** Metrics that also count the calls of clouds. */
  readonly metrics: Metrics;
  private journal: Journal | undefined;
  private readonly lines: CompressedLines;
  private endReports: (() => void)[] = [];

  constructor(private readonly options: RecorderOptions) {
    const { store, clock, log, activity, summaries = activity, metrics } = options;
    this.timelines = new Timelines({
      store,
      clock,
      reports: options.reports,
      onError: (error) => log.error('The end of a phase could not be recorded', error),
    });
    const { events } = this.timelines;
    this.costs = new CostMeter({ store, clock, providers: options.providers ?? (() => NO_PROVIDERS) });
    this.history = new History({
      store,
      clock,
      events,
      activity: summaries,
      costs: this.costs.reader(),
      onStep: (step) => this.journal?.add({ step }),
    });
    this.failures = new ProviderFailures(clock, events);
    this.providerEvents = new ProviderEvents(clock, summaries, (event) => this.journal?.add({ event }));
    this.zooKeeper = new ZooKeeperWatch({
      ...{ clock, metrics, zooKeeper: store.zooKeeper },
      onError: (error) => log.error('The latency of ZooKeeper could not be measured', error),
    });
    this.nodes = new NodeTally(store);
    this.lines = new CompressedLines({
      ...{ clock, maxBytes: MAX_EXPORT_BYTES, maxAgeMs: MAX_AGE_MS },
      onError: (error) => log.error('A part of the journal could not be compressed; it is lost', error),
    });
    this.metrics = watchApiCalls(metrics, this.history);
  }

  /** True if the history survives a restart. */
  get persisted(): boolean {
    return this.journal?.healthy ?? false;
  }

  /** Loads the journal and starts to watch the records. Call it before the store starts. */
  async start(): Promise<void> {
    const { log, clock, stateDir, metrics } = this.options;
    if (stateDir === undefined) log.info('The history is kept in memory only; --state-dir preserves it');
    else await this.openJournal(new Journal({ directory: stateDir, clock, log }));
    const { timelines, history } = this;
    const { events } = timelines;
    events.requestEnded.on((life) => {
      this.journal?.add({ request: encodeRequest(life) });
      this.export(life);
    });
    events.nodeEnded.on((life) => {
      this.journal?.add({ node: encodeNode(life) });
      this.export(life);
    });
    this.endReports = [
      reportPhases(timelines, metrics),
      this.nodes.start(),
      this.costs.start(),
      reportCosts(this.costs, metrics),
    ];
    timelines.start();
    history.start();
    this.providerEvents.start();
    this.zooKeeper.start();
  }

  /** Resolves once the journal is written. */
  async stop(): Promise<void> {
    const { timelines, history, journal } = this;
    this.zooKeeper.stop();
    this.providerEvents.stop();
    history.stop();
    timelines.stop();
    for (const end of this.endReports) end();
    const { requests, nodes } = timelines.open();
    for (const life of requests) journal?.add({ request: encodeRequest(life) });
    for (const life of nodes) journal?.add({ node: encodeNode(life) });
    await journal?.close();
  }

  /**
   * Resolves with the journal of the last day for `nodepool plan`, as the members of one gzip file of JSON lines: all
   * lives that have ended, those that have not, and the limits of the clouds.
   */
  async exportJournal(): Promise<readonly Buffer[]> {
    const { clock, activity, summaries = activity } = this.options;
    const ended = await this.lines.read();
    const now = clock.now();
    const open = this.timelines.open();
    const head = [headerLine(this.lines.since, now), ...summaries().map(providerLine)];
    const lives = [...open.requests, ...open.nodes].map((life) => lineOf(life, now));
    return [await compressed(head), ...ended, await compressed(lives)];
  }

  private export(life: RequestLife | NodeLife): void {
    this.lines.add(JSON.stringify(lineOf(life, this.options.clock.now())));
  }

  private async openJournal(journal: Journal): Promise<void> {
    const { log } = this.options;
    try {
      for (const entry of await journal.load()) this.restore(entry);
      this.journal = journal;
    } catch (error) {
      log.warn('The history cannot be preserved in the state directory; it is kept in memory only', {
        file: journal.file,
        reason: reasonOf(error),
      });
    }
  }

  private restore(entry: unknown): void {
    if (!isObject(entry)) return;
    const { request, node, step, event } = entry;
    this.providerEvents.restore(event);
    const life = request === undefined ? decodeNode(node) : decodeRequest(request);
    const oldest = this.options.clock.now() - MAX_AGE_MS;
    if (life !== undefined && (life.end ?? Infinity) >= oldest) {
      this.timelines.restore(life);
      if (life.end !== undefined) this.export(life);
      this.lines.since = Math.min(this.lines.since, life.end ?? Infinity);
    }
    const bucket = HistoryBucket.from(step);
    if (bucket !== undefined) this.history.restore(bucket);
  }
}

function lineOf(life: RequestLife | NodeLife, now: number): object {
  return life instanceof NodeLife ? nodeLine(life, now) : requestLine(life);
}
