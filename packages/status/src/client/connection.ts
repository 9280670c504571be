/** Receives the document of a view from the launcher as a stream, or by polling where streams are blocked. */

import { after } from './clock.js';
import type { StatusMessage } from './model.js';

const ASK_EVERY_MS = 3000;
/** Number of polls after which the client tries the stream again. */
const ANSWERS_UNTIL_STREAM = 10;

/** The current way of receiving updates. */
export type Liveness = 'stream' | 'asking' | 'lost';

export interface ConnectionListener {
  message(message: StatusMessage): void;
  liveness(liveness: Liveness): void;
  /** The launcher does not accept the view's parameters; the connection has ended. */
  refused(reason: string): void;
}

/** The connection of one view; `close` ends it. URLs are relative, and so work behind a proxy's path prefix. */
export class Connection {
  private source: EventSource | undefined;
  private closed = false;

  constructor(
    private readonly view: string,
    private readonly listener: ConnectionListener,
  ) {
    if (typeof EventSource === 'undefined') this.ask(Infinity);
    else this.stream();
  }

  close(): void {
    this.closed = true;
    this.source?.close();
  }

  private stream(): void {
    const source = new EventSource(`status/events?view=${encodeURIComponent(this.view)}`);
    this.source = source;
    source.onmessage = ({ data }: MessageEvent<string>) => {
      if (this.closed) return;
      this.listener.liveness('stream');
      this.listener.message(parse(data));
    };
    source.onerror = () => {
      if (this.closed) return;
      // While the browser reconnects the stream, polling would fail as well.
      if (source.readyState === EventSource.CLOSED) this.ask(ANSWERS_UNTIL_STREAM);
      else this.listener.liveness('lost');
    };
  }

  private ask(times: number): void {
    if (this.closed) return;
    if (times <= 0) {
      this.stream();
      return;
    }
    const again = (left: number): void => after(ASK_EVERY_MS, () => this.ask(left));
    const url = `status/now?view=${encodeURIComponent(this.view)}`;
    fetch(url, { cache: 'no-store', signal: AbortSignal.timeout(ASK_EVERY_MS * 3) })
      .then(async (response) => {
        if (response.status === 400) {
          const reason = await response.text();
          if (!this.closed) this.listener.refused(reason.trim());
          return;
        }
        if (!response.ok) throw new Error(`the launcher answers ${response.status}`);
        const message = parse(await response.text());
        if (this.closed) return;
        this.listener.liveness('asking');
        this.listener.message(message);
        again(times - 1);
      })
      .catch(() => {
        if (this.closed) return;
        // The page shows the failure, and the next poll follows.
        this.listener.liveness('lost');
        again(times);
      });
  }
}

/**
 * Parses a message without validation: the page and its messages come from the same launcher. After an upgrade of the
 * launcher `app.ts` reloads the page.
 */
function parse(text: string): StatusMessage {
  return JSON.parse(text) as StatusMessage;
}
