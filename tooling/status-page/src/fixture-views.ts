/** Answers a page's requests for documents with fixtures; the page itself still comes from the launcher's endpoint. */

import type { BrowserContext } from 'playwright-core';

/** `documentOf` returns the document of a view; `now` returns the launcher's time in unix seconds. */
export async function serveFixtures(
  context: BrowserContext,
  documentOf: (view: string) => Readonly<Record<string, unknown>>,
  now: () => number,
): Promise<void> {
  await context.addInitScript(streamOnce);
  await context.route('**/status/now?*', (route) => {
    const view = new URL(route.request().url()).searchParams.get('view') ?? '';
    return route.fulfill({ json: { time: now(), sections: { ...documentOf(view), missing: false } } });
  });
}

/** Runs in the page: replaces the stream by one that sends the document once. */
function streamOnce(): void {
  class Stream {
    static readonly CLOSED = 2;
    readonly readyState = 1;
    onmessage: ((event: { readonly data: string }) => void) | undefined;

    constructor(url: string) {
      void fetch(url.replace('events', 'now'))
        .then((response) => response.text())
        .then((data) => this.onmessage?.({ data }));
    }

    close(): void {
      this.onmessage = undefined;
    }
  }
  Object.assign(window, { EventSource: Stream });
}
