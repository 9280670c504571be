/** Signals that follow others, and let go of them: `AbortSignal.any` stays attached to a long-lived signal for too long. */

export interface LinkedSignal {
  readonly signal: AbortSignal;
  /** Follows no longer. To be called when the work that the signal was for has ended. */
  unlink(): void;
}

/** A signal that aborts with the first of these, for the same reason. */
export function linkSignals(...sources: readonly AbortSignal[]): LinkedSignal {
  const controller = new AbortController();
  const unlink = (): void => {
    for (const source of sources) source.removeEventListener('abort', follow);
  };
  const follow = (event: Event): void => {
    unlink();
    controller.abort(event.target instanceof AbortSignal ? event.target.reason : undefined);
  };
  for (const source of sources) {
    if (source.aborted) {
      unlink();
      controller.abort(source.reason);
      break;
    }
    source.addEventListener('abort', follow, { once: true });
  }
  return { signal: controller.signal, unlink };
}
