/** RSA keys, which are generated once for all simulations of a process because that takes long. */

import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';

export interface KeyPair {
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

const pairs = new Map<string, KeyPair>();

/** Returns the key pair with a name. */
export function keyPair(name: string): KeyPair {
  const known = pairs.get(name);
  if (known !== undefined) return known;
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const pair = { privateKey, publicKey: createPublicKey(privateKey) };
  pairs.set(name, pair);
  return pair;
}
