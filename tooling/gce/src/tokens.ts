/**
 * Credentials: the key of a service account, with which Google's library signs tokens itself (https://google.aip.dev/auth/4111).
 * Signature, audience or scope, and expiry are checked.
 */

import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto';
import { systemClock, type RandomSource } from '@nodepool/core';
import { asMessage, newId, textAt, type Message } from './ground.js';
import { Refusal } from './refusal.js';
import { PROJECT } from './settings.js';

const ACCOUNT = `nodepool@${PROJECT}.iam.gserviceaccount.com`;
const SCOPE = /\/auth\/(cloud-platform|compute|devstorage\.read_write)\b/;

let privateKey: string | undefined;

/** Made once for all simulated clouds of a process: it takes a while. */
function ownKey(): string {
  privateKey ??= generateKeyPairSync('rsa', { modulusLength: 2048 })
    .privateKey.export({ type: 'pkcs8', format: 'pem' })
    .toString();
  return privateKey;
}

export class Tokens {
  private readonly key = ownKey();
  private readonly publicKey = createPublicKey(this.key);
  private readonly issued = new Set<string>();
  private keyId = 'first';

  constructor(private readonly random: RandomSource) {}

  /** Content of a file with credentials. */
  credentials(): Message {
    return {
      type: 'service_account',
      project_id: PROJECT,
      private_key_id: this.keyId,
      private_key: this.key,
      client_email: ACCOUNT,
      client_id: '1',
    };
  }

  /** A token for whoever has no library. */
  issue(): string {
    const token = `token-${newId(this.random)}`;
    this.issued.add(token);
    return token;
  }

  /** Credentials and tokens that were given out are refused from now on. */
  revoke(): void {
    this.keyId = newId(this.random);
    this.issued.clear();
  }

  /** Throws unless there is a good token. */
  check(authorization: string | undefined): void {
    const token = authorization?.replace(/^Bearer /, '') ?? '';
    if (this.issued.has(token) || this.isSigned(token)) return;
    const message = 'Request had invalid authentication credentials. Expected OAuth 2 access token.';
    throw new Refusal(401, 'authError', message);
  }

  private isSigned(token: string): boolean {
    const [header = '', claims = '', signature = ''] = token.split('.');
    if (textAt(decoded(header), 'kid') !== this.keyId) return false;
    const { exp, iss, scope } = decoded(claims);
    if (iss !== ACCOUNT || typeof exp !== 'number' || exp * 1000 < systemClock.now()) return false;
    if (typeof scope !== 'string' || !SCOPE.test(scope)) return false;
    return verify(
      'RSA-SHA256',
      Buffer.from(`${header}.${claims}`),
      this.publicKey,
      Buffer.from(signature, 'base64url'),
    );
  }
}

function decoded(part: string): Message {
  try {
    return asMessage(JSON.parse(Buffer.from(part, 'base64url').toString('utf8')));
  } catch {
    // Whatever it is, it is no token of ours.
    return {};
  }
}
