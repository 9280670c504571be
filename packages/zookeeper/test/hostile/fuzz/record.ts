/** Records the answers of a real server for the corpus. */

import { connectThrough } from '../../../src/client/client.js';
import { openConnection, type OpenWire } from '../../../src/client/connection.js';
import { ConnectionLostError, sleep, systemClock } from '../../../src/index.js';
import type { Corpus } from './corpus.js';
import { OPERATIONS } from './operations.js';

const EVENT_XID = -1;
const PING_XID = -2;
const SET_WATCHES_XID = -8;
const CLOSE_REQUEST_XID = 0;
const SESSION_TIMEOUT_MS = 4000;

/** Makes every type of call at `servers`, and cuts the connection once. Leaves `/fuzz` behind on failure. */
export async function recordCorpus(servers: string): Promise<Corpus> {
  const corpus: Record<string, Buffer[]> = {};
  let current = 'connect';
  let isFirst = true;
  let cut: () => void = () => undefined;
  const recording: OpenWire = (endpoint, tls, maxFrameBytes, handler) => {
    isFirst = true;
    const wire = openConnection(endpoint, tls, maxFrameBytes, {
      onOpen: () => handler.onOpen(),
      onEnd: (error) => handler.onEnd(error),
      onBytes: () => handler.onBytes(),
      onFrame: (bytes, start, end) => {
        const message = Buffer.from(bytes.subarray(start, end));
        (corpus[isFirst ? 'connect' : nameOf(message, current)] ??= []).push(message);
        isFirst = false;
        handler.onFrame(bytes, start, end);
      },
    });
    // Simulates a network failure.
    cut = () => {
      wire.destroy();
      handler.onEnd(new ConnectionLostError('connection-lost', 'cut for the recording'));
    };
    return wire;
  };
  const zk = connectThrough(recording, { servers, sessionTimeoutMs: SESSION_TIMEOUT_MS });
  await zk.connected();
  for (const [name, attempt] of Object.entries(OPERATIONS)) {
    current = name;
    await attempt(zk).catch(() => undefined);
  }
  // Waits for a ping.
  await sleep(systemClock, SESSION_TIMEOUT_MS / 2);
  current = 'rest';
  zk.watch('/fuzz', 'persistent-recursive', { onEvent: () => undefined });
  await zk.create('/fuzz/last');
  cut();
  for (const name of (await zk.children('/fuzz')).children) await zk.delete(`/fuzz/${name}`);
  await zk.delete('/fuzz');
  await zk.close();
  delete corpus['rest'];
  return corpus;
}

function nameOf(message: Buffer, current: string): string {
  switch (message.readInt32BE(0)) {
    case EVENT_XID:
      return 'event';
    case PING_XID:
      return 'ping';
    case SET_WATCHES_XID:
      return 'setWatches';
    case CLOSE_REQUEST_XID:
      return 'rest';
    default:
      return current;
  }
}
