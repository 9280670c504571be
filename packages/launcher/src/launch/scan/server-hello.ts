/**
 * Reads what an ssh server sends unencrypted before the key exchange: its identification (RFC 4253, section 4.2) and
 * its SSH_MSG_KEXINIT (section 7.1), which names the algorithms of its host keys.
 */

import type { Socket } from 'node:net';

/** Identification of this client; servers may wait for it before they send their algorithms. */
const IDENTIFICATION = 'SSH-2.0-nodepool\r\n';
/** Limit of the received bytes: lines before the identification, and a packet of 35000 bytes (section 6.1). */
const MAX_BYTES = 64 * 1024;
const MAX_PACKET_BYTES = 35_000;
const SSH_MSG_IGNORE = 2;
const SSH_MSG_DEBUG = 4;
const SSH_MSG_KEXINIT = 20;
const COOKIE_BYTES = 16;

/** Resolves with the host key algorithms of a connected server. Rejects if it is no ssh server of version 2. */
export function readHostKeyAlgorithms(socket: Socket): Promise<readonly string[]> {
  return new Promise((resolve, reject) => {
    let received = Buffer.alloc(0);
    socket.on('data', (chunk: Buffer) => {
      try {
        received = Buffer.concat([received, chunk]);
        const algorithms = parseServerHello(received);
        if (algorithms !== undefined) resolve(algorithms);
        else if (received.length > MAX_BYTES) throw new Error('the server sends data that is not ssh');
      } catch (error) {
        socket.pause();
        reject(error instanceof Error ? error : new Error(String(error)));
      }
    });
    socket.write(IDENTIFICATION);
  });
}

/** Returns the `server_host_key_algorithms` in the data, or undefined if it is incomplete. Throws if it is not ssh. */
export function parseServerHello(received: Buffer): readonly string[] | undefined {
  let offset = endOfIdentification(received);
  while (offset !== undefined && offset + 6 <= received.length) {
    const length = received.readUInt32BE(offset);
    const padding = received.readUInt8(offset + 4);
    const type = received.readUInt8(offset + 5);
    if (length < padding + 2 || length > MAX_PACKET_BYTES)
      throw new Error(`the server sent a packet of ${length} bytes`);
    if (type !== SSH_MSG_KEXINIT && type !== SSH_MSG_IGNORE && type !== SSH_MSG_DEBUG) {
      throw new Error(`the server sent message ${type} instead of its algorithms`);
    }
    const next = offset + 4 + length;
    if (next > received.length) return undefined;
    if (type === SSH_MSG_KEXINIT) return hostKeyAlgorithms(received.subarray(offset + 6, next - padding));
    offset = next;
  }
  return undefined;
}

/** Returns the offset of the first packet, after the first line with `SSH-`, which other lines may precede. */
function endOfIdentification(received: Buffer): number | undefined {
  let start = 0;
  for (;;) {
    const end = received.indexOf(0x0a, start);
    if (end < 0) return undefined;
    const line = received.toString('latin1', start, end).trimEnd();
    if (line.startsWith('SSH-2.0-') || line.startsWith('SSH-1.99-')) return end + 1;
    if (line.startsWith('SSH-'))
      throw new Error(`the server speaks ${JSON.stringify(line.slice(0, 40))}, not version 2`);
    start = end + 1;
  }
}

/** Returns the second name-list of the message, after the cookie and the key exchange methods. */
function hostKeyAlgorithms(body: Buffer): readonly string[] {
  const methods = nameListAt(body, COOKIE_BYTES);
  return nameListAt(body, methods.end)
    .text.split(',')
    .filter((name) => name !== '');
}

function nameListAt(body: Buffer, offset: number): { readonly text: string; readonly end: number } {
  if (offset + 4 > body.length) throw new Error('the server sent a list of algorithms that is cut off');
  const end = offset + 4 + body.readUInt32BE(offset);
  if (end > body.length) throw new Error('the server sent a list of algorithms that is cut off');
  return { text: body.toString('latin1', offset + 4, end), end };
}
