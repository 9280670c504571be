/** Effect in the cloud of the call that failed. */
export type Outcome = 'not-applied' | 'applied' | 'unknown';

/** Kinds of failures; `ERROR_POLICIES` says what each means. */
export type DriverErrorCode =
  | 'quota'
  | 'capacity'
  | 'throttled'
  | 'not-found'
  | 'conflict'
  | 'configuration'
  | 'auth'
  | 'transient'
  | 'timeout'
  | 'instance-failed'
  | 'keyscan'
  | 'aborted'
  | 'unexpected';
