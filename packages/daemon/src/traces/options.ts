import type { Logger } from '@nodepool/core';

export interface TracingOptions {
  /** `service.name` unless `OTEL_SERVICE_NAME` is set. */
  readonly service: string;
  readonly version: string;
  readonly log: Logger;
  readonly env: Readonly<Record<string, string | undefined>>;
}
