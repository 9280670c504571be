/** Effect of a failed call in the cloud. */
export type Outcome = 'not-applied' | 'applied' | 'unknown';

/** Kinds of failures; `ERROR_POLICIES` defines the reaction to each. */
export type DriverErrorCode =
  | 'quota'
  | 'capacity'
  | 'throttled'
  | 'not-found'
  | 'conflict'
  | 'configuration'
  | 'auth'
  | 'certificate'
  | 'refused'
  | 'transient'
  | 'timeout'
  | 'instance-failed'
  | 'keyscan'
  | 'aborted'
  | 'unexpected';
