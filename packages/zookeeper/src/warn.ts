/** Where problems go that nobody asked to be told of. */

/** Makes a warning of the process, which writes it to its standard error. */
export function warnProcess(error: unknown): void {
  process.emitWarning(error instanceof Error ? (error.stack ?? error.message) : String(error));
}
