/** Emits a process warning, which Node.js writes to standard error. */
export function warnProcess(error: unknown): void {
  process.emitWarning(error instanceof Error ? (error.stack ?? error.message) : String(error));
}
