/** Converts the server's error codes (`KeeperException.Code`) to errors of this package. */

import {
  BadVersionError,
  NoNodeError,
  NodeExistsError,
  NotEmptyError,
  SessionLostError,
  InvalidArgumentError,
  ZooKeeperError,
  type ZooKeeperErrorCode,
  type ZooKeeperErrorDetails,
} from '../errors.js';

export const ServerCode = {
  ok: 0,
  runtimeInconsistency: -2,
  noNode: -101,
  authFailed: -115,
  noWatcher: -121,
} as const;

interface Meaning {
  readonly code: ZooKeeperErrorCode;
  readonly text: string;
  readonly type?: new (code: ZooKeeperErrorCode, message: string, details?: ZooKeeperErrorDetails) => ZooKeeperError;
}

const MEANINGS: ReadonlyMap<number, Meaning> = new Map<number, Meaning>([
  [
    -6,
    { code: 'unimplemented', text: 'this server does not know this kind of request; it is too old or has it disabled' },
  ],
  [-8, { code: 'invalid-argument', text: 'the server rejects the arguments', type: InvalidArgumentError }],
  [-101, { code: 'no-node', text: 'there is no such znode', type: NoNodeError }],
  [-102, { code: 'no-auth', text: 'the access control list of the znode does not allow it' }],
  [-103, { code: 'bad-version', text: 'the znode has another version', type: BadVersionError }],
  [-108, { code: 'no-children-for-ephemerals', text: 'the parent is ephemeral and cannot have children' }],
  [-110, { code: 'node-exists', text: 'the znode exists already', type: NodeExistsError }],
  [-111, { code: 'not-empty', text: 'the znode has children', type: NotEmptyError }],
  [-112, { code: 'session-lost', text: 'the session expired', type: SessionLostError }],
  [-114, { code: 'invalid-acl', text: 'the access control list is invalid' }],
  [-115, { code: 'auth-failed', text: 'the server rejects the credentials' }],
  [-118, { code: 'session-moved', text: 'the session has moved to another server' }],
  [-119, { code: 'not-read-only', text: 'the server currently only serves reads' }],
  [-121, { code: 'no-watcher', text: 'there is no such watch' }],
  [-125, { code: 'quota-exceeded', text: 'a quota of ZooKeeper is exceeded' }],
  [-127, { code: 'throttled', text: 'the server is overloaded and dropped the request' }],
]);

export function serverError(serverCode: number, details: ZooKeeperErrorDetails): ZooKeeperError {
  const meaning = MEANINGS.get(serverCode);
  const what = `${details.operation ?? 'request'}${details.path === undefined ? '' : ` ${details.path}`}`;
  const all = { ...details, serverCode };
  if (meaning === undefined) {
    return new ZooKeeperError('server-error', `${what}: the server failed it with code ${serverCode}`, all);
  }
  const Type = meaning.type ?? ZooKeeperError;
  return new Type(meaning.code, `${what}: ${meaning.text}`, all);
}
