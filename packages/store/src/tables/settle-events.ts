/**
 * Yields one microtask so that all watch events of a transaction are applied before any of them is acted on. The events
 * of one transaction arrive in one packet and are applied one by one in the same run of the event loop: a listener of
 * the first change would see half of the transaction. Every decision that follows an event calls this first.
 */
export function settleEvents(): Promise<void> {
  return Promise.resolve();
}
