/**
 * Signals that follow other signals and can be detached. `AbortSignal.any` stays attached to a long-lived signal for
 * too long.
 */

export interface LinkedSignal {
  readonly signal: AbortSignal;
  /** Detaches the signal from its sources. Must be called when the work that the signal was created for has ended. */
  unlink(): void;
}

/** A linked signal that its owner can abort, too. */
export interface LinkedController extends LinkedSignal {
  /** Detaches the signal from its sources and aborts it. */
  abort(reason: Error): void;
}

/** Returns a signal that aborts when the first of the sources aborts, with the same reason. */
export function linkSignals(...sources: readonly AbortSignal[]): LinkedController {
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
  const abort = (reason: Error): void => {
    unlink();
    controller.abort(reason);
  };
  return { signal: controller.signal, unlink, abort };
}
