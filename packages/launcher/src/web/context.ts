/** What the web endpoint's routes live on. */

import type { Clock, Logger } from '@nodepool/core';
import type { MetricsRegistry } from '@nodepool/daemon';
import type { Store } from '@nodepool/store';
import type { FastifyInstance } from 'fastify';
import type { ExplanationSources } from '../diagnostics/explanation.js';
import type { StatusSources } from './status/sources.js';

export interface WebContext {
  readonly store: Store;
  readonly log: Logger;
  readonly clock: Clock;
  /** True once every provider has started. */
  readonly isReady: () => boolean;
  /** For `/metrics`; without it there is no such page. */
  readonly metrics?: Pick<MetricsRegistry, 'exposition'>;
  /** For `/explain`; without it there are no such pages. */
  readonly explain?: Pick<ExplanationSources, 'decisions' | 'activity'>;
  /** For the status page at `/`, which needs `explain`, too; without it there is no such page. */
  readonly status?: StatusSources;
}

/** A group of endpoints; one file each. All of them only read. */
export type WebRoutes = (app: FastifyInstance, context: WebContext) => void;
