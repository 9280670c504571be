/**
 * Authentication and access control lists as in ZooKeeper 3.8 (`PrepRequestProcessor.fixupACL`,
 * `ZooKeeperServer.checkACL`, `DigestAuthenticationProvider`), with the schemes world, auth, digest and ip.
 */

import { createHash } from 'node:crypto';
import { BlockList, isIP } from 'node:net';
import { OPEN_ACL, Permission, type Acl } from '../api.js';
import { Refusal, RefusedError } from './messages.js';

/** An authenticated identity of a client, as access control lists name it. */
export interface ServerIdentity {
  readonly scheme: string;
  readonly id: string;
}

/** The identity of every simulated client before it authenticates. */
export const LOCAL_IDENTITY: ServerIdentity = { scheme: 'ip', id: '127.0.0.1' };

/** Returns the identity of credentials, or undefined if they are refused. */
export function authenticate(scheme: string, auth: Uint8Array): ServerIdentity | undefined {
  if (scheme === 'ip') return LOCAL_IDENTITY;
  if (scheme !== 'digest') return undefined;
  const [user = ''] = Buffer.from(auth).toString().split(':', 1);
  return { scheme, id: `${user}:${createHash('sha1').update(auth).digest('base64')}` };
}

/** Returns true if one of the entries allows one of the permissions. */
export function allows(acl: readonly Acl[], anyOf: number, identities: readonly ServerIdentity[]): boolean {
  // The common case: simulations check every request and event.
  if (acl === OPEN_ACL) return true;
  return acl.some(
    (entry) =>
      (entry.permissions & anyOf) !== 0 && (isAnyone(entry) || identities.some((identity) => matches(entry, identity))),
  );
}

/** Returns the list to store, with `auth` replaced by the client's identities. Throws `RefusedError`. */
export function storedAcl(acl: readonly Acl[], identities: readonly ServerIdentity[]): readonly Acl[] {
  if (acl.length === 1 && isOpen(acl[0])) return OPEN_ACL;
  const stored = acl.flatMap((entry) => {
    if (entry.scheme === 'auth') return ownEntries(entry, identities);
    if (isAnyone(entry) || isValid(entry)) return [entry];
    throw new RefusedError(Refusal.invalidAcl);
  });
  if (stored.length === 0) throw new RefusedError(Refusal.invalidAcl);
  return stored.filter((entry, index) => stored.findIndex((other) => isSame(entry, other)) === index);
}

/** Returns the list for a client without the admin permission: digests are masked. */
export function maskedAcl(acl: readonly Acl[]): readonly Acl[] {
  return acl.map((entry) => (entry.scheme === 'digest' ? { ...entry, id: `${userOf(entry.id)}:x` } : entry));
}

function ownEntries({ permissions }: Acl, identities: readonly ServerIdentity[]): Acl[] {
  const own = identities.filter(({ scheme }) => scheme === 'digest');
  if (own.length === 0) throw new RefusedError(Refusal.invalidAcl);
  return own.map(({ scheme, id }) => ({ permissions, scheme, id }));
}

function isAnyone({ scheme, id }: Acl): boolean {
  return scheme === 'world' && id === 'anyone';
}

function isOpen(entry: Acl | undefined): boolean {
  return entry?.scheme === 'world' && entry.id === 'anyone' && entry.permissions === Permission.all;
}

function isSame(one: Acl, other: Acl): boolean {
  return one.permissions === other.permissions && one.scheme === other.scheme && one.id === other.id;
}

function matches(entry: Acl, { scheme, id }: ServerIdentity): boolean {
  if (scheme !== entry.scheme) return false;
  return scheme === 'ip' ? rangeOf(entry.id)?.check(id) === true : id === entry.id;
}

function isValid({ scheme, id }: Acl): boolean {
  if (scheme === 'digest') return id.split(':').length === 2;
  return scheme === 'ip' && rangeOf(id) !== undefined;
}

/** Returns the addresses of `address` or `address/bits`, or undefined if the text is malformed. */
function rangeOf(text: string): BlockList | undefined {
  const [address = '', bits] = text.split('/');
  const family = isIP(address);
  if (family === 0) return undefined;
  const longest = family === 4 ? 32 : 128;
  const length = bits === undefined ? longest : Number(bits);
  if (!Number.isInteger(length) || length < 0 || length > longest) return undefined;
  const range = new BlockList();
  range.addSubnet(address, length, family === 4 ? 'ipv4' : 'ipv6');
  return range;
}

function userOf(digestId: string): string {
  return digestId.slice(0, digestId.indexOf(':'));
}
