/** The common interface of the builder's controllers. */

import type { NodepoolConfig } from '@nodepool/config';

export interface Controller {
  apply?(config: NodepoolConfig): void;
  /** Reconciles an image that changed. */
  changed?(image: string): void;
  /** Reconciles everything, after the records are complete again or a provider became ready. */
  addAll?(): void;
  /** Starts nothing from now on. Running builds and uploads continue; other work is aborted for `reason`. */
  stop(reason: Error): void;
}
