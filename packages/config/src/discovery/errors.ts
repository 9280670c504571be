export type DriverLoadReason =
  /** The package is not in any of the folders. */
  | 'not-installed'
  /** The package does not declare or does not export a driver. */
  | 'not-a-driver'
  /** The driver was written for another version of the driver API. */
  | 'api-mismatch'
  /** The code or the package.json of the driver fails. */
  | 'broken';

export interface DriverLoadErrorOptions {
  readonly reason: DriverLoadReason;
  /** Name of the driver in the configuration. */
  readonly driver: string;
  readonly problem: string;
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
