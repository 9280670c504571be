/** Traces of work as spans. Programs create no spans while tracing is off, so that it then costs nothing. */

/** The identity of a span in another program. */
export interface SpanOrigin {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  readonly sampled: boolean;
}

export type SpanAttributes = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

export interface SpanOptions {
  /** Milliseconds since the epoch. Default: now. */
  readonly at?: number | undefined;
  /** Default: none, so that the span begins a trace. */
  readonly parent?: Span | SpanOrigin | undefined;
  /** True for calls to other services. */
  readonly isCall?: boolean | undefined;
  readonly attributes?: SpanAttributes | undefined;
}

export interface Span extends SpanOrigin {
  set(attributes: SpanAttributes): void;
  /** Ends the span at `at` (ms since the epoch; default: now). `failure` is the reason why its work failed. */
  end(at?: number, failure?: string): void;
}

export interface Tracing {
  span(name: string, options?: SpanOptions): Span;
  /** Exports the ended spans, and stops. */
  stop(): Promise<void>;
}
