/** Signals that follow others and can be detached. `AbortSignal.any` stays attached to a long-lived signal. */

import { CallbackController, addAbortCallback, removeAbortCallback } from './abort-callbacks.js';

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
  const controller = new CallbackController();
  const unlink = (): void => {
    for (const source of sources) removeAbortCallback(source, onAbort);
  };
  const onAbort = (): void => {
    unlink();
    const source = sources.find(({ aborted }) => aborted);
    if (source !== undefined) controller.abort(source.reason);
  };
  for (const source of sources) {
    if (source.aborted) {
      unlink();
      controller.abort(source.reason);
      break;
    }
    addAbortCallback(source, onAbort);
  }
  const abort = (reason: Error): void => {
    unlink();
    controller.abort(reason);
  };
  return { signal: controller.signal, unlink, abort };
}
