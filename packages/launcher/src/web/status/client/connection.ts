/**
 * Brings what the launcher says into the page: as a stream, and where that does not get through, by asking every few
 * seconds.
 */

import { after } from './clock.js';
import type { StatusMessage } from './status.js';

const ASK_EVERY_MS = 3000;
/** The stream is tried again after so many answers. */
const ANSWERS_UNTIL_STREAM = 10;

/** How the page is kept up to date at the moment. */
export type Liveness = 'stream' | 'asking' | 'lost';

export interface ConnectionListener {
  message(message: StatusMessage): void;
  liveness(liveness: Liveness): void;
}

/** Connects, for as long as the page is open. Addresses are relative, so that it works behind a proxy's prefix. */
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
    // While it connects again by itself, asking would not get through either.
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
      // The page says so; the next attempt follows.
      listener.liveness('lost');
      again(times);
    });
}

/** The page comes from the launcher that it reads; when that is of another version by now, `app.ts` loads the page again. */
function parse(text: string): StatusMessage {
  return JSON.parse(text) as StatusMessage;
}
