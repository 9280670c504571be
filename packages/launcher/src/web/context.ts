/** What the web endpoint's routes live on. */

import type { Clock, Logger, Store } from '@nodepool/core';
import type { FastifyInstance } from 'fastify';

export interface WebContext {
  readonly store: Store;
  readonly log: Logger;
  readonly clock: Clock;
  /** True once every provider has started. */
  readonly isReady: () => boolean;
}

/** A group of endpoints; one file each. All of them only read. */
export type WebRoutes = (app: FastifyInstance, context: WebContext) => void;
