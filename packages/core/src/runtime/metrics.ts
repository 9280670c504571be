/**
 * Metrics, declared once: a declaration says the name and the labels that Prometheus sees, and the keys that statsd
 * sees. Whoever counts names the declaration and the labels; where the numbers go is decided here.
 */

export type MetricLabels<L extends string> = Readonly<Record<L, string>>;

interface Declaration<L extends string> {
  /** For Prometheus; durations end in `_seconds`, counters in `_total`. */
  readonly name: string;
  readonly help: string;
  readonly labels: readonly L[];
  /** Keys for statsd, made with `statsdName` and `statsdPart`. Empty if only Prometheus gets the metric. */
  readonly statsd: (labels: MetricLabels<L>) => readonly string[];
}

/** Only goes up; statsd gets a counter. */
export interface Counter<L extends string = string> extends Declaration<L> {
  readonly kind: 'counter';
}

/** A value of now; statsd gets a gauge. */
export interface Gauge<L extends string = string> extends Declaration<L> {
  readonly kind: 'gauge';
}

/** How long something took; Prometheus gets a histogram in seconds, statsd a timer in milliseconds and a counter of the same key. */
export interface Duration<L extends string = string> extends Declaration<L> {
  readonly kind: 'duration';
  /** Upper bounds of the histogram, seconds. */
  readonly buckets: readonly number[];
}

/** Where the parts of a program report what happens. */
export interface Metrics {
  count<L extends string>(counter: Counter<L>, labels: MetricLabels<L>, amount?: number): void;
  observe<L extends string>(duration: Duration<L>, labels: MetricLabels<L>, milliseconds: number): void;
  /** Undefined: there is no such value any more. */
  set<L extends string>(gauge: Gauge<L>, labels: MetricLabels<L>, value: number | undefined): void;
  /**
   * `refresh` sets gauges, and is called before they are sent or read: for values that are cheap to tell and would be
   * expensive to follow. Returns how to end that.
   */
  onCollect(refresh: () => void): () => void;
}

/** Where statsd's lines go. Implementation: `statsd.ts`. */
export interface StatsdSender {
  increment(key: string, amount: number): void;
  timing(key: string, milliseconds: number): void;
  gauge(key: string, value: number): void;
  /** Resolves once everything is sent. */
  close(): Promise<void>;
}

/** Where Prometheus' series are kept. Implementation: `prometheus.ts`. */
export interface PrometheusSeries {
  increment(counter: Counter, labels: MetricLabels<string>, amount: number): void;
  observe(duration: Duration, labels: MetricLabels<string>, seconds: number): void;
  set(gauge: Gauge, labels: MetricLabels<string>, value: number | undefined): void;
  readonly contentType: string;
  text(): Promise<string>;
}

/** For programs and tests that report nothing. */
export const silentMetrics: Metrics = {
  count: () => undefined,
  observe: () => undefined,
  set: () => undefined,
  onCollect: () => () => undefined,
};

/** Characters that end the key, or the line, in statsd's protocol. */
const PROTOCOL_CHARACTERS = /[:|\p{Cc}]/gu;
const LEVEL_AND_PROTOCOL_CHARACTERS = /[.:|\p{Cc}]/gu;

/**
 * Returns the name of a label, provider, zone, pool or image as it appears in a statsd key: unchanged, dots included, as
 * the existing Nodepool sends it. Only characters that statsd cannot carry become `_`.
 */
export function statsdName(name: string): string {
  return name.replace(PROTOCOL_CHARACTERS, '_');
}

/** Returns the name of a requestor, tenant or host as one level of a statsd key: dots and colons become `_`. */
export function statsdPart(name: string): string {
  return name.replace(LEVEL_AND_PROTOCOL_CHARACTERS, '_');
}
