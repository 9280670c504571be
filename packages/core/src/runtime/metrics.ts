/**
 * Declarations of metrics: the name and the labels for Prometheus, and the keys for statsd. Code that reports a metric
 * passes only the declaration and the label values.
 */

export type MetricLabels<L extends string> = Readonly<Record<L, string>>;

interface Declaration<L extends string> {
  /** Name for Prometheus; durations end in `_seconds`, counters in `_total`. */
  readonly name: string;
  readonly help: string;
  readonly labels: readonly L[];
  /** Returns the keys for statsd, of `statsdName` and `statsdPart`. Empty if only Prometheus receives the metric. */
  readonly statsd: (labels: MetricLabels<L>) => readonly string[];
}

/** A value that only increases; statsd receives a counter. */
export interface Counter<L extends string = string> extends Declaration<L> {
  readonly kind: 'counter';
}

/** A current value; statsd receives a gauge. */
export interface Gauge<L extends string = string> extends Declaration<L> {
  readonly kind: 'gauge';
}

/** A measured duration: for Prometheus a histogram (seconds), for statsd a timer (ms) and a counter of the key. */
export interface Duration<L extends string = string> extends Declaration<L> {
  readonly kind: 'duration';
  /** Upper bounds of the histogram, in seconds. */
  readonly buckets: readonly number[];
}

type Statsd<L extends string> = Declaration<L>['statsd'];

const noKeys = (): readonly string[] => [];

/** Declares a counter. Without `statsd`, only Prometheus receives it. */
export function counter<L extends string>(
  name: string,
  labels: readonly L[],
  help: string,
  statsd: Statsd<L> = noKeys,
): Counter<L> {
  return { kind: 'counter', name, help, labels, statsd };
}

/** Declares a gauge. Without `statsd`, only Prometheus receives it. */
export function gauge<L extends string>(
  name: string,
  labels: readonly L[],
  help: string,
  statsd: Statsd<L> = noKeys,
): Gauge<L> {
  return { kind: 'gauge', name, help, labels, statsd };
}

/** Declares a duration; `buckets` are upper bounds in seconds. Without `statsd`, only Prometheus receives it. */
export function duration<L extends string>(
  name: string,
  labels: readonly L[],
  help: string,
  buckets: readonly number[],
  statsd: Statsd<L> = noKeys,
): Duration<L> {
  return { kind: 'duration', name, help, labels, buckets, statsd };
}

/** Receives the metrics of all parts of a program. */
export interface Metrics {
  count<L extends string>(counter: Counter<L>, labels: MetricLabels<L>, amount?: number): void;
  observe<L extends string>(duration: Duration<L>, labels: MetricLabels<L>, milliseconds: number): void;
  /** Sets a gauge; undefined removes the value. */
  set<L extends string>(gauge: Gauge<L>, labels: MetricLabels<L>, value: number | undefined): void;
  /**
   * Registers `refresh`, which sets gauges before they are sent or read. Suits values that are cheap to compute and
   * expensive to track. Returns a function that removes it.
   */
  onCollect(refresh: () => void): () => void;
}

/** Metrics that are discarded, for programs and tests without metrics. */
export const silentMetrics: Metrics = {
  count: () => undefined,
  observe: () => undefined,
  set: () => undefined,
  onCollect: () => () => undefined,
};

/** Characters that end the key or the line in statsd's protocol. */
const PROTOCOL_CHARACTERS = /[:|\p{Cc}]/gu;
const LEVEL_AND_PROTOCOL_CHARACTERS = /[.:|\p{Cc}]/gu;

/**
 * Returns the name of a label, provider, zone, pool or image as it appears in a statsd key: unchanged, dots included,
 * as the Python Nodepool sends it. Only characters that statsd cannot transmit become `_`.
 */
export function statsdName(name: string): string {
  return name.replace(PROTOCOL_CHARACTERS, '_');
}

/** Returns the name of a requestor, tenant or host as one level of a statsd key: dots and colons become `_`. */
export function statsdPart(name: string): string {
  return name.replace(LEVEL_AND_PROTOCOL_CHARACTERS, '_');
}
