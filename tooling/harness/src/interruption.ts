/** Ctrl-C handling for programs that start other programs. */

/**
 * Returns a signal that aborts on the first SIGINT or SIGTERM. The second one ends this process and all that it has
 * started.
 */
export function interruption(): AbortSignal {
  const controller = new AbortController();
  const interrupt = (): void => {
    if (controller.signal.aborted) process.exit(130);
    controller.abort(new Error('interrupted'));
  };
  process.on('SIGINT', interrupt);
  process.on('SIGTERM', interrupt);
  return controller.signal;
}
