/** Constants and records of the client protocol (`zookeeper.jute`, `ZooDefs.OpCode`, `ClientCnxn` of ZooKeeper 3.8). */

import { OPEN_ACL, type Acl, type CreateMode, type Stat, type WatchEvent } from '../api.js';
import { InvalidArgumentError, ZooKeeperError } from '../errors.js';
import type { JuteReader } from './jute-reader.js';
import { JuteWriter } from './jute-writer.js';

export const Opcode = {
  delete: 2,
  exists: 3,
  getData: 4,
  setData: 5,
  getAcl: 6,
  setAcl: 7,
  getChildren: 8,
  sync: 9,
  ping: 11,
  getChildren2: 12,
  check: 13,
  multi: 14,
  create2: 15,
  removeWatches: 18,
  createContainer: 19,
  createTtl: 21,
  multiRead: 22,
  auth: 100,
  setWatches: 101,
  getEphemerals: 103,
  getAllChildrenNumber: 104,
  setWatches2: 105,
  addWatch: 106,
  whoAmI: 107,
  closeSession: -11,
  /** Type of a failed operation in the answer to a transaction. */
  error: -1,
} as const;

/** Reserved request numbers. The numbers of ordinary requests are positive. */
export const SpecialXid = { event: -1, ping: -2, auth: -4, setWatches: -8 } as const;

/** Flags of a creation (`CreateMode`). */
export const CREATE_FLAGS: Readonly<Record<CreateMode, number>> = {
  persistent: 0,
  ephemeral: 1,
  'persistent-sequential': 2,
  'ephemeral-sequential': 3,
  container: 4,
  'persistent-ttl': 5,
  'persistent-sequential-ttl': 6,
};

export const ADD_WATCH_MODE = { persistent: 0, 'persistent-recursive': 1 } as const;

/** `WatcherType` of removeWatches. */
export const WATCHER_TYPE = { children: 1, data: 2, any: 3 } as const;

const EVENT_TYPES: Readonly<Record<number, WatchEvent['type']>> = {
  1: 'created',
  2: 'deleted',
  3: 'changed',
  4: 'children',
};

const PASSWORD_BYTES = 16;
const STAT_BYTES = 68;
const TWO_TO_32 = 2 ** 32;
/** Type of an event, and state of the session. */
const EVENT_BYTES = 8;
/** Length of malformed input in error messages. */
const SHOWN_CHARACTERS = 100;

/** The first message of a connection. Session id 0 requests a new session. */
export interface ConnectRequest {
  readonly lastZxid: bigint;
  readonly timeoutMs: number;
  readonly sessionId: bigint;
  readonly password: Uint8Array;
  /** True if the client accepts a read-only server. */
  readonly readOnly: boolean;
}

/** The answer to a `ConnectRequest`. A `timeoutMs` of 0 means that the session has expired. */
export interface ConnectResponse {
  readonly timeoutMs: number;
  readonly sessionId: bigint;
  readonly password: Uint8Array;
  /** True if the server has lost its quorum and only serves reads. */
  readonly readOnly: boolean;
}

export const NO_SESSION = { sessionId: 0n, password: Buffer.alloc(PASSWORD_BYTES) } as const;

/** Writes the message, and an integer before it that `takeFrame` replaces by its length. */
export function writeConnectRequest(writer: JuteWriter, request: ConnectRequest): void {
  writer.int(0);
  writer.int(0); // protocol version
  writer.long(request.lastZxid);
  writer.int(request.timeoutMs);
  writer.long(request.sessionId);
  writer.buffer(request.password);
  writer.boolean(request.readOnly);
}

export function readConnectResponse(reader: JuteReader): ConnectResponse {
  const version = reader.int();
  if (version !== 0)
    throw new ZooKeeperError('protocol', `the server speaks version ${version} of the protocol, not 0`);
  return {
    timeoutMs: reader.int(),
    sessionId: reader.long(),
    password: reader.buffer(),
    // Servers older than 3.4 do not send it.
    readOnly: reader.remaining > 0 && reader.boolean(),
  };
}

export function readStat(reader: JuteReader): Stat {
  const at = reader.advance(STAT_BYTES);
  const { view } = reader;
  return {
    czxid: view.getBigInt64(at),
    mzxid: view.getBigInt64(at + 8),
    ctime: longAsNumber(view, at + 16),
    mtime: longAsNumber(view, at + 24),
    version: view.getInt32(at + 32),
    cversion: view.getInt32(at + 36),
    aversion: view.getInt32(at + 40),
    ephemeralOwner: view.getBigInt64(at + 44),
    dataLength: view.getInt32(at + 52),
    numChildren: view.getInt32(at + 56),
    pzxid: view.getBigInt64(at + 60),
  };
}

/** Returns a 64-bit integer that a number can hold, such as a time in milliseconds. */
function longAsNumber(view: DataView, at: number): number {
  return view.getInt32(at) * TWO_TO_32 + view.getUint32(at + 4);
}

/** Smallest size of an ACL entry, with empty texts. */
const ACL_BYTES = 12;

export function readAcl(reader: JuteReader): Acl[] {
  const count = reader.count('an access control list', ACL_BYTES);
  const acl = new Array<Acl>(count);
  for (let index = 0; index < count; index++) {
    acl[index] = { permissions: reader.int(), scheme: reader.text(), id: reader.text() };
  }
  return acl;
}

export function writeAcl(writer: JuteWriter, acl: readonly Acl[]): void {
  if (acl === OPEN_ACL) writer.bytes(OPEN_ACL_BYTES);
  else writeAclEntries(writer, acl);
}

function writeAclEntries(writer: JuteWriter, acl: readonly Acl[]): void {
  if (acl.length === 0) throw new InvalidArgumentError('invalid-argument', 'an access control list must not be empty');
  writer.int(acl.length);
  for (const entry of acl) {
    writer.int(entry.permissions);
    writer.text(entry.scheme);
    writer.text(entry.id);
  }
}

/** The list of most creations, in the serialised form. */
const OPEN_ACL_BYTES = openAclBytes();

/** Reads a watch event, whose path includes the chroot. Returns undefined for an unknown type of event. */
export function readWatchEvent(reader: JuteReader): WatchEvent | undefined {
  const at = reader.advance(EVENT_BYTES);
  // The connection tells the state of the session.
  const type = EVENT_TYPES[reader.view.getInt32(at)];
  const path = reader.text();
  if (type === undefined) return undefined;
  // `parentPath` relies on a leading slash.
  if (!path.startsWith('/')) {
    const shown = JSON.stringify(path.slice(0, SHOWN_CHARACTERS));
    throw new ZooKeeperError('protocol', `the server sent an event for ${shown}, which is not a path`);
  }
  return { type, path };
}

function openAclBytes(): Buffer {
  const writer = new JuteWriter();
  writeAclEntries(writer, OPEN_ACL);
  return writer.take();
}
