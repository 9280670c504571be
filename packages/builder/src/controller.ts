/** What the controllers of the builder have in common. */

import type { NodepoolConfig } from '@nodepool/config';

export interface Controller {
  /** Follows another configuration. */
  apply?(config: NodepoolConfig): void;
  /** Reconciles an image that changed. */
  changed?(image: string): void;
  /** Reconciles everything: the records are complete again, or a provider is ready. */
  addAll?(): void;
  /** Starts nothing from now on. Builds and uploads in progress go on; everything else is aborted for `reason`. */
  stop(reason: Error): void;
}
