/**
 * Measures the npm package `zookeeper`. Arguments: its folder, servers, folder, operations in flight, number of
 * operations.
 */

import { createRequire } from 'node:module';
import { measureClient } from './zookeeper-measure.js';

/** The used part of the package. It is not a dependency, so its own types are unavailable. */
interface NativeClient {
  init(options: Record<string, unknown>): void;
  once(event: 'connect', listener: () => void): void;
  create(path: string, data: Buffer, flags: number): Promise<unknown>;
  set(path: string, data: Buffer, version: number): Promise<unknown>;
  get(path: string, watch: boolean): Promise<unknown>;
  delete_(path: string, version: number): Promise<unknown>;
  close(): void;
}

interface NativePackage {
  readonly Promise: new () => NativeClient;
}

const [packageFolder = '', servers = '', folder = '', inFlight = '', operations = ''] = process.argv.slice(2);

async function main(): Promise<void> {
  const { Promise: NativePromise } = createRequire(__filename)(packageFolder) as NativePackage;
  const client = new NativePromise();
  const connected = new Promise<void>((resolve) => client.once('connect', resolve));
  // A high counter limit avoids a false session expiry when an answer arrives in many pieces.
  client.init({ connect: servers, timeout: 10_000, debug_level: 1, response_counter_limit: 2 ** 30 });
  await connected;
  await measureClient(
    {
      create: (at, data) => client.create(at, data, 0),
      set: (at, data) => client.set(at, data, -1),
      get: (at) => client.get(at, false),
      delete: (at) => client.delete_(at, -1),
      close: async () => client.close(),
    },
    folder,
    Number(inFlight),
    Number(operations),
  );
}

main().then(
  // The package keeps the process alive after the client is closed.
  () => process.exit(),
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    process.exit(1);
  },
);
