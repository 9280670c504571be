/** Redirects of load balancers, and the hosts that they lead to. */

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A host other than that of a simulated cloud. */
export interface OtherHost {
  /** e.g. `http://localhost:20345`. */
  readonly url: string;
  /** Number of requests that it received. */
  readonly requests: number;
  close(): Promise<void>;
}

/** Starts a host that records requests and answers with an empty object. */
export async function startOtherHost(): Promise<OtherHost> {
  let requests = 0;
  const server = createServer((_request, response) => {
    requests += 1;
    response.setHeader('Content-Type', 'application/json').end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://localhost:${port}`,
    get requests() {
      return requests;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Returns a rule of a fault plan that redirects the first request of every call to its own address. */
export function movedCalls(status: number): {
  readonly on: () => boolean;
  readonly times: number;
  readonly fault: { readonly kind: 'redirect'; readonly status: number; readonly to: (url: URL) => string };
} {
  let isMoved = false;
  const on = (): boolean => (isMoved = !isMoved);
  return { on, times: Infinity, fault: { kind: 'redirect', status, to: (url) => url.pathname + url.search } };
}
