/** JSON web tokens (RFC 7519), signed with RS256 by clients, or with HS256 by the service. */

import { createHmac, verify, type KeyObject } from 'node:crypto';
import { isJsonObject, type JsonObject } from '@nodepool/core';

/** A token that has been read and not verified. */
export interface Jwt {
  readonly header: JsonObject;
  readonly claims: JsonObject;
  readonly signed: string;
  readonly signature: Buffer;
}

/** Returns the parts of a token, or undefined if the text is not one. */
export function readJwt(token: string): Jwt | undefined {
  const parts = token.split('.');
  const [head = '', body = '', signature = ''] = parts;
  const header = objectIn(head);
  const claims = objectIn(body);
  if (parts.length !== 3 || header === undefined || claims === undefined) return undefined;
  return { header, claims, signed: `${head}.${body}`, signature: Buffer.from(signature, 'base64url') };
}

/** Returns true if the owner of the key has signed the token with RS256. */
export function isSignedBy({ header, signed, signature }: Jwt, publicKey: KeyObject): boolean {
  return header['alg'] === 'RS256' && verify('RSA-SHA256', Buffer.from(signed), publicKey, signature);
}

/** Returns a token that is signed with a secret of the service. */
export function signJwt(claims: JsonObject, secret: string): string {
  const signed = `${encoded({ alg: 'HS256', typ: 'JWT' })}.${encoded(claims)}`;
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`;
}

function encoded(value: JsonObject): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

function objectIn(part: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString('utf8'));
    return isJsonObject(value) ? value : undefined;
  } catch {
    // The text is not a token.
    return undefined;
  }
}
