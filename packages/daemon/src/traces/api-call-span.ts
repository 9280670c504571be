import type { ApiCall, Clock, Span, Tracing } from '@nodepool/core';

/** Writes an ended call to a cloud as a span. */
export function apiCallSpan(
  { tracing, clock }: { readonly tracing: Tracing; readonly clock: Pick<Clock, 'now'> },
  provider: string,
  { service, method, operation, host, durationMs, status }: ApiCall,
  parent?: Span,
): void {
  const end = clock.now();
  const span = tracing.span(`${service}.${operation}`, {
    at: end - durationMs,
    parent,
    isCall: true,
    attributes: {
      'nodepool.provider': provider,
      'http.request.method': method,
      'server.address': host,
      'http.response.status_code': typeof status === 'number' ? status : undefined,
    },
  });
  const failed = status !== 'ok' && !(typeof status === 'number' && status < 400);
  span.end(end, failed ? String(status ?? 'no answer') : undefined);
}
