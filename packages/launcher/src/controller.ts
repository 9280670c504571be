/** The interface of the launcher's controllers. */

import type { NodepoolConfig } from '@nodepool/config';

export interface Controller {
  /** Applies a changed configuration, or a changed set of providers that this launcher serves. */
  apply?(config: NodepoolConfig): void;
  /** Stops the controller; it starts no further work. */
  stop(): void | Promise<void>;
}
