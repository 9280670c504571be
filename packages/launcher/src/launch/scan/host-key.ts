/** Fetches one host key of an ssh server: starts a key exchange for one algorithm and ends it when the key arrives. */

import { createRequire } from 'node:module';
import type { Socket } from 'node:net';
import type * as Ssh2 from 'ssh2';
import type { Algorithms, ServerHostKeyAlgorithm } from 'ssh2';

const load = createRequire(__filename);

/** Algorithms by kind of key, the best first. One RSA key works with several algorithms. */
const KEY_KINDS: readonly (readonly ServerHostKeyAlgorithm[])[] = [
  ['ssh-ed25519'],
  ['ecdsa-sha2-nistp256'],
  ['ecdsa-sha2-nistp384'],
  ['ecdsa-sha2-nistp521'],
  ['rsa-sha2-512', 'rsa-sha2-256', 'ssh-rsa'],
  ['ssh-dss'],
];

/** Includes outdated algorithms because some network devices have no others; nothing secret is sent. */
const OLD_ALGORITHMS: Algorithms = {
  kex: appended('diffie-hellman-group-exchange-sha1', 'diffie-hellman-group14-sha1', 'diffie-hellman-group1-sha1'),
  cipher: appended('aes256-cbc', 'aes192-cbc', 'aes128-cbc', '3des-cbc'),
  hmac: appended('hmac-md5'),
};

function appended<A>(...algorithms: A[]): Record<'append' | 'prepend' | 'remove', A[]> {
  return { append: algorithms, prepend: [], remove: [] };
}

/** Returns one of the offered algorithms for each key of a server. */
export function algorithmPerKey(offered: readonly string[]): readonly ServerHostKeyAlgorithm[] {
  const has = new Set(offered);
  return KEY_KINDS.map((algorithms) => algorithms.find((algorithm) => has.has(algorithm))).filter(
    (algorithm) => algorithm !== undefined,
  );
}

/** Resolves with the key as `<type> <base64>`. The caller closes the connection. */
export function fetchHostKey(socket: Socket, algorithm: ServerHostKeyAlgorithm): Promise<string> {
  return new Promise((resolve, reject) => {
    // Loaded on demand because loading takes tens of milliseconds. The published package contains it as a bundle.
    const { Client } = load('#ssh2') as typeof Ssh2;
    const client = new Client();
    client.on('error', reject);
    client.connect({
      sock: socket,
      username: 'nodepool',
      readyTimeout: 0,
      algorithms: { ...OLD_ALGORITHMS, serverHostKey: [algorithm] },
      hostVerifier: (key: Buffer) => {
        try {
          resolve(`${keyType(key)} ${key.toString('base64')}`);
        } catch (error) {
          reject(error instanceof Error ? error : new Error(String(error)));
        }
        return false;
      },
    });
  });
}

/** Returns the type of a public key, which begins with its name (RFC 4253, section 6.6). */
function keyType(key: Buffer): string {
  const length = key.length < 4 ? 0 : key.readUInt32BE(0);
  const type = key.toString('latin1', 4, 4 + length);
  if (!/^[a-z0-9@.-]{1,64}$/.test(type)) throw new Error('the server sent a host key without a type');
  return type;
}
