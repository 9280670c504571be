/** Who wants to hear of something. */

import type { Logger } from '@nodepool/core';

export class Listeners<T> {
  private readonly listeners = new Set<{ readonly hear: (news: T) => void }>();

  constructor(private readonly log: Logger) {}

  /** Returns how to stop listening. */
  add(hear: (news: T) => void): () => void {
    const listener = { hear };
    this.listeners.add(listener);
    return () => {
      this.listeners.delete(listener);
    };
  }

  /** A listener that throws is logged; the others, and what is to be told next, must not suffer. */
  tell(news: T): void {
    for (const { hear } of this.listeners) {
      try {
        hear(news);
      } catch (error) {
        this.log.error('A listener to changes of the store failed', error);
      }
    }
  }
}
