/** Why a driver could not be loaded. */

export type DriverLoadReason =
  /** No such package in any of the folders. */
  | 'not-installed'
  /** A package that does not say that it is a driver, or does not export one. */
  | 'not-a-driver'
  /** Written for another version of the driver API. */
  | 'api-mismatch'
  /** Its code or its package.json fails. */
  | 'broken';

export interface DriverLoadErrorOptions {
  readonly reason: DriverLoadReason;
  /** As in the configuration. */
  readonly driver: string;
  /** What is wrong. */
  readonly problem: string;
  /** What to do about it. */
  readonly remedy: string;
  readonly cause?: unknown;
}

export class DriverLoadError extends Error {
  readonly reason: DriverLoadReason;
  readonly driver: string;
  readonly problem: string;
  readonly remedy: string;

  constructor(options: DriverLoadErrorOptions) {
    super(`${options.problem}; ${options.remedy}`, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'DriverLoadError';
    this.reason = options.reason;
    this.driver = options.driver;
    this.problem = options.problem;
    this.remedy = options.remedy;
  }
}
