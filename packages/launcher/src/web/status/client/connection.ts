/** Receives status messages from the launcher as a stream, or by polling where streams are blocked. */

import { after } from './clock.js';
import type { StatusMessage } from './status.js';

const ASK_EVERY_MS = 3000;
/** Number of polls after which the stream is tried again. */
const ANSWERS_UNTIL_STREAM = 10;

/** The current way of receiving updates. */
export type Liveness = 'stream' | 'asking' | 'lost';

export interface ConnectionListener {
  message(message: StatusMessage): void;
  liveness(liveness: Liveness): void;
}

/**
 * Connects for as long as the page is open. URLs are relative, so that the page also works behind a proxy's path
 * prefix.
 */
export function connect(listener: ConnectionListener): void {
  if (typeof EventSource === 'undefined') ask(listener, Infinity);
  else stream(listener);
}

function stream(listener: ConnectionListener): void {
  const source = new EventSource('status/events');
  source.onmessage = ({ data }: MessageEvent<string>) => {
    listener.liveness('stream');
    listener.message(parse(data));
  };
  source.onerror = () => {
    // While the browser reconnects the stream, polling would fail as well.
    if (source.readyState === EventSource.CLOSED) ask(listener, ANSWERS_UNTIL_STREAM);
    else listener.liveness('lost');
  };
}

function ask(listener: ConnectionListener, times: number): void {
  if (times <= 0) {
    stream(listener);
    return;
  }
  const again = (left: number): void => after(ASK_EVERY_MS, () => ask(listener, left));
  fetch('status/now', { cache: 'no-store', signal: AbortSignal.timeout(ASK_EVERY_MS * 3) })
    .then(async (response) => {
      if (!response.ok) throw new Error(`the launcher answers ${response.status}`);
      const message = parse(await response.text());
      listener.liveness('asking');
      listener.message(message);
      again(times - 1);
    })
    .catch(() => {
      // The page shows the failure, and the next poll follows.
      listener.liveness('lost');
      again(times);
    });
}

/**
 * Parses a message without validation: the page and its messages come from the same launcher. After an upgrade of the
 * launcher `app.ts` reloads the page.
 */
function parse(text: string): StatusMessage {
  return JSON.parse(text) as StatusMessage;
}
