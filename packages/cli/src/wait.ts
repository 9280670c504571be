import { abortReason } from '@nodepool/core';

/**
 * Resolves with the first result of `look` that is not undefined. Calls `look` at once and after each event. Rejects
 * with the signal's reason if it aborts first, or with any error of `look`.
 */
export function waitUntil<T>(
  look: () => T | undefined,
  subscribe: (listener: () => void) => () => void,
  signal: AbortSignal,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const settle = (finish: () => void): void => {
      unsubscribe();
      signal.removeEventListener('abort', onAbort);
      finish();
    };
    const onAbort = (): void => settle(() => reject(abortReason(signal)));
    const check = (): void => {
      try {
        const found = look();
        if (found !== undefined) settle(() => resolve(found));
      } catch (error) {
        settle(() => reject(error instanceof Error ? error : new Error(String(error))));
      }
    };
    const unsubscribe = subscribe(check);
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
    else check();
  });
}
