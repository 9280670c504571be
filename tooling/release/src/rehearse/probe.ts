/** Waits for servers that do not announce their start. */

import { sleep, systemClock } from '@nodepool/core';

const POLL_INTERVAL_MS = 100;

/** Polls until the server answers without an error. Rejects when the signal aborts. */
export async function untilAnswered(url: string, signal: AbortSignal): Promise<void> {
  for (;;) {
    try {
      const answer = await fetch(url, { signal });
      if (answer.ok) return;
    } catch (error) {
      if (signal.aborted) throw error;
      // The server does not listen yet.
    }
    await sleep(systemClock, POLL_INTERVAL_MS, signal);
  }
}
