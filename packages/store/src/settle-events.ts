/**
 * Yields one microtask so that all watch events of a transaction are applied before any of them is acted on. The events of
 * one transaction arrive in one packet and are applied in one run of the event loop, one change at a time: the listener of
 * the first change would decide on half of a transaction. Every decision that follows an event calls this first.
 */
export function settleEvents(): Promise<void> {
  return Promise.resolve();
}
