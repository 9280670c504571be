/** Spans through OpenTelemetry, which sends them by OTLP over HTTP. The standard variables configure it. */

import {
  diag,
  DiagLogLevel,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Attributes,
  type Context,
  type Span as OtelSpan,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import {
  reasonOf,
  type Span,
  type SpanAttributes,
  type SpanOptions,
  type SpanOrigin,
  type Tracing,
} from '@nodepool/core';
import type { TracingOptions } from './options.js';

/** The name under which spans are recorded. */
const SCOPE = 'nodepool';

export function otlpTracing({ service, version, log }: TracingOptions): Tracing {
  const report = (message: string): void => log.warn('OpenTelemetry reports a problem', { problem: message });
  const ignore = (): void => undefined;
  diag.setLogger({ error: report, warn: report, info: ignore, debug: ignore, verbose: ignore }, DiagLogLevel.WARN);
  const named = resourceFromAttributes({ 'service.name': service, 'service.version': version });
  const provider = new BasicTracerProvider({
    // The attributes of the environment have priority.
    resource: named.merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
  });
  const tracer = provider.getTracer(SCOPE, version);
  return {
    span(name, { at, parent, isCall = false, attributes = {} }: SpanOptions = {}) {
      const options = {
        ...(at === undefined ? {} : { startTime: timeOf(at) }),
        kind: isCall ? SpanKind.CLIENT : SpanKind.INTERNAL,
        attributes: known(attributes),
      };
      return new OtlpSpan(tracer.startSpan(name, options, contextOf(parent)));
    },
    async stop() {
      try {
        await provider.shutdown();
      } catch (error) {
        log.warn('The last traces could not be sent', { reason: reasonOf(error) });
      }
    },
  };
}

class OtlpSpan implements Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly sampled: boolean;

  constructor(private readonly span: OtelSpan) {
    const { traceId, spanId, traceFlags } = span.spanContext();
    this.traceId = traceId;
    this.spanId = spanId;
    this.sampled = (traceFlags & TraceFlags.SAMPLED) !== 0;
  }

  set(attributes: SpanAttributes): void {
    this.span.setAttributes(known(attributes));
  }

  end(at?: number, failure?: string): void {
    if (failure !== undefined) this.span.setStatus({ code: SpanStatusCode.ERROR, message: failure });
    this.span.end(at === undefined ? undefined : timeOf(at));
  }
}

/** Returns seconds and nanoseconds: OpenTelemetry would take a small number for the age of the process. */
function timeOf(ms: number): [seconds: number, nanoseconds: number] {
  const seconds = Math.floor(ms / 1000);
  return [seconds, Math.round((ms - seconds * 1000) * 1_000_000)];
}

function contextOf(parent: SpanOrigin | undefined): Context {
  if (parent === undefined) return ROOT_CONTEXT;
  const { traceId, spanId, sampled } = parent;
  const traceFlags = sampled ? TraceFlags.SAMPLED : TraceFlags.NONE;
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote: !(parent instanceof OtlpSpan) });
}

function known(attributes: SpanAttributes): Attributes {
  return Object.fromEntries(
    Object.entries(attributes).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, typeof value === 'object' ? [...value] : value]],
    ),
  );
}
