/** Faults of the simulated AWS. */

import type { CallFault as AnyCallFault, CloudCall, FaultRule as AnyFaultRule } from '@nodepool/simulated-cloud';

export type AwsFault =
  /** An error in the form of the called service, e.g. `InternalError`. */
  | AnyCallFault<{ readonly code: string; readonly message?: string }>
  /** The service's error for too many calls, e.g. `RequestLimitExceeded` of EC2 and `SlowDown` of S3. */
  | { readonly kind: 'throttle' }
  /** The service's error for expired temporary credentials. */
  | { readonly kind: 'expired-credentials' }
  /** Status 200 with a cut-off or foreign body. */
  | { readonly kind: 'garbage' }
  /** The call sees the state of `ms` ago. */
  | { readonly kind: 'lag'; readonly ms: number }
  /** The launched instances become `terminated` instead of `running`, e.g. with `Client.VolumeLimitExceeded`. */
  | { readonly kind: 'launch-failure'; readonly code: string; readonly message: string }
  /** CreateFleet launches nothing, and reports this error for each pool within its answer. */
  | { readonly kind: 'fleet-error'; readonly code: string; readonly message: string }
  /** The started task, snapshot or image ends in its state of failure with the message. */
  | { readonly kind: 'task-failure'; readonly message: string };

/** A call for the log and for fault rules. */
export interface AwsApiCall extends CloudCall {
  /** Region of the signature; undefined if the call has none. */
  readonly region: string | undefined;
  /** Parameters of EC2 and STS as the protocol names them, e.g. `InstanceType`; parameters of the URL otherwise. */
  readonly parameters: URLSearchParams;
}

export type FaultRule = AnyFaultRule<AwsFault, AwsApiCall>;
