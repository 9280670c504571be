/** Ctrl-C handling for programs that start other programs. */

/** The reason of the signal of `interruption`. */
export class InterruptedError extends Error {
  constructor() {
    super('interrupted');
    this.name = 'InterruptedError';
  }
}

/**
 * Returns a signal that aborts on the first SIGINT or SIGTERM. The second one ends this process and all that it has
 * started.
 */
export function interruption(): AbortSignal {
  const controller = new AbortController();
  const interrupt = (): void => {
    if (controller.signal.aborted) process.exit(130);
    controller.abort(new InterruptedError());
  };
  process.on('SIGINT', interrupt);
  process.on('SIGTERM', interrupt);
  return controller.signal;
}
