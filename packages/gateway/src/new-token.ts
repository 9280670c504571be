/** Generates tokens for the token file. */

import { randomBytes } from 'node:crypto';
import { hashOfToken } from './auth/authenticator.js';

/** Bytes of a token; its hash needs no salt, because a token cannot be guessed. */
const TOKEN_BYTES = 32;

/** Returns a new token and the entry for the token file. */
export function newToken(name: string): { readonly token: string; readonly entry: string } {
  const token = `npl_${randomBytes(TOKEN_BYTES).toString('base64url')}`;
  const hash = hashOfToken(token).toString('hex');
  const entry = `  - name: ${JSON.stringify(name)}\n    sha256: ${hash}\n    labels: ["*"]\n`;
  return { token, entry };
}
