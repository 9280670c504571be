/** What the controllers of the launcher have in common. */

import type { NodepoolConfig } from '@nodepool/config';

export interface Controller {
  /** Follows another configuration, and other providers that this launcher serves. */
  apply?(config: NodepoolConfig): void;
  /** Starts nothing from now on. */
  stop(): void | Promise<void>;
}
