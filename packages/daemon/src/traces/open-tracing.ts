/** Starts tracing if the environment asks for it. The libraries are loaded only then. */

import { createRequire } from 'node:module';
import type { Tracing } from '@nodepool/core';
import type * as Otlp from './otlp-tracing.js';
import type { TracingOptions } from './options.js';

const loadModule = createRequire(__filename);

/** Returns undefined unless `OTEL_EXPORTER_OTLP_ENDPOINT` or the variable for traces is set. */
export function openTracing(options: TracingOptions): Tracing | undefined {
  const { env, log } = options;
  // By the specification, an empty variable is as good as none, and "true" may have capital letters.
  const endpoint = env['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'] || env['OTEL_EXPORTER_OTLP_ENDPOINT'] || '';
  const isDisabled = env['OTEL_SDK_DISABLED']?.toLowerCase() === 'true' || env['OTEL_TRACES_EXPORTER'] === 'none';
  if (endpoint === '' || isDisabled) return undefined;
  const protocol = env['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL'] || env['OTEL_EXPORTER_OTLP_PROTOCOL'] || 'http/json';
  if (protocol !== 'http/json') {
    log.warn('Traces are sent as http/json, whatever OTEL_EXPORTER_OTLP_PROTOCOL demands', { protocol });
  }
  const { otlpTracing } = loadModule('./otlp-tracing.js') as typeof Otlp;
  log.info('Sending traces', { endpoint: withoutPassword(endpoint) });
  return otlpTracing(options);
}

function withoutPassword(endpoint: string): string {
  return endpoint.replace(/\/\/[^@/]*@/u, '//');
}
