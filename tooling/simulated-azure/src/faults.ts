/** Faults of the simulated Azure. */

import { FaultPlan, type CallFault as AnyCallFault, type FaultRule as AnyFaultRule } from '@nodepool/simulated-cloud';

export type CallFault =
  | AnyCallFault<{ readonly code: string; readonly message?: string }>
  /** Lists omit resources created within the last `ms` and include those deleted within it. */
  | { readonly kind: 'lag'; readonly ms: number };

export type FaultRule = AnyFaultRule<CallFault>;

/** The outcome of a VM's creation. */
export interface VmFailure {
  readonly code: string;
  readonly message: string;
}

export class AzureFaults extends FaultPlan<CallFault> {
  private failures: VmFailure[] = [];

  /** Makes the creation of the next VM fail after it was accepted. */
  failNextVm(failure: VmFailure): void {
    this.failures.push(failure);
  }

  override clear(): void {
    super.clear();
    this.failures = [];
  }

  nextFailure(): VmFailure | undefined {
    return this.failures.shift();
  }
}
