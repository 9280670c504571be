/** The dependencies of the web endpoint's routes. */

import type { Clock, Logger } from '@nodepool/core';
import type { MetricsRegistry } from '@nodepool/daemon';
import type { HttpApp } from '@nodepool/daemon/web';
import type { Store } from '@nodepool/store';
import type { ExplanationSources } from '../explain/explanation.js';
import type { StatusSources } from '../documents/sources.js';

export interface WebContext {
  readonly store: Store;
  readonly log: Logger;
  readonly clock: Clock;
  /** Returns true once every provider serves requests or is known to fail. */
  readonly isReady: () => boolean;
  /** The metrics that `/metrics` serves, with those of the status page; without them the page does not exist. */
  readonly metrics?: Pick<MetricsRegistry, 'exposition' | 'set' | 'onCollect'>;
  /** The data that `/explain` serves; without it the pages do not exist. */
  readonly explain?: Omit<ExplanationSources, 'store' | 'clock'>;
  /** The data of the status page at `/`, which also requires `explain`; without both the page does not exist. */
  readonly status?: StatusSources;
}

/** Adds one group of read-only endpoints to the server; each group has a file of its own. */
export type WebRoutes = (app: HttpApp, context: WebContext) => void;
