/**
 * The metadata service of machines of Google Cloud, which gives tokens of the machine's service account
 * (https://cloud.google.com/compute/docs/metadata/overview). It listens on its own port.
 */

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

const TOKEN_PATH = /^\/computeMetadata\/v1\/instance\/service-accounts\/default\/token\b/;
const INSTANCE_PATH = /^\/computeMetadata\/v1\/instance\/?(\?|$)/;
const TOKEN_SECONDS = 3600;

export interface MetadataService {
  /** Host and port for `GCE_METADATA_HOST`. */
  readonly host: string;
  close(): Promise<void>;
}

/** Starts the service. `issue` returns a valid token. Rejects if the port is in use. */
export async function startMetadataService(issue: () => string, port = 0): Promise<MetadataService> {
  const server = createServer(({ headers, url = '' }, response) => {
    // The service answers requests without this header with 403, which protects it from browsers and proxies.
    const status =
      headers['metadata-flavor'] !== 'Google' ? 403 : TOKEN_PATH.test(url) || INSTANCE_PATH.test(url) ? 200 : 404;
    response.writeHead(status, { 'Metadata-Flavor': 'Google', 'Content-Type': 'application/json' });
    const token = { access_token: issue(), expires_in: TOKEN_SECONDS, token_type: 'Bearer' };
    response.end(status !== 200 ? '' : TOKEN_PATH.test(url) ? JSON.stringify(token) : 'service-accounts/\n');
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
