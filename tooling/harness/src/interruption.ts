/** Ctrl-C, for programs that start others. */

/** Aborts with the first SIGINT or SIGTERM; the second one ends the process, and with it all that it has started. */
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
