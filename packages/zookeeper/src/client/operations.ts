/** The types of requests: writes their frames and reads their answers. */

import type { Acl, CreateMode, CreateOptions, Identity, PersistentWatch, Stat, WatchKind } from '../api.js';
import { OPEN_ACL } from '../api.js';
import { InvalidArgumentError } from '../errors.js';
import type { Operation } from './call.js';
import { JuteWriter } from './jute-writer.js';
import type { Chroot } from './paths.js';
import {
  ADD_WATCH_MODE,
  CREATE_FLAGS,
  Opcode,
  readAcl,
  readStat,
  SpecialXid,
  WATCHER_TYPE,
  writeAcl,
  writeConnectRequest,
  type ConnectRequest,
} from './protocol.js';

/** Shared: no frame is interrupted between `begin` and `finish`. */
const writer = new JuteWriter();
/** The start of a request: its length, its number, its type. */
const HEADER_BYTES = 12;
const XID_OFFSET = 4;
const OPCODE_OFFSET = 8;
const EMPTY = Buffer.alloc(0);
const MAX_TTL_MS = 0xff_ffff_ffff;

function begin(opcode: number, xid = 0): JuteWriter {
  writer.reset();
  const at = writer.advance(HEADER_BYTES);
  writer.view.setInt32(at + XID_OFFSET, xid);
  writer.view.setInt32(at + OPCODE_OFFSET, opcode);
  return writer;
}

function finish(): Buffer {
  return writer.takeFrame();
}

export interface Created {
  readonly path: string;
  readonly stat: Stat;
}

export function createOperation(chroot: Chroot): Operation<Created> {
  return {
    name: 'create',
    write: true,
    read: (reader) => {
      const path = reader.text();
      return { path: chroot.toClient(path) ?? path, stat: readStat(reader) };
    },
  };
}
export const DELETE: Operation<void> = { name: 'delete', write: true, read: () => undefined };
export const EXISTS: Operation<Stat | undefined> = { name: 'exists', write: false, mayBeAbsent: true, read: readStat };
export const GET: Operation<{ data: Uint8Array; stat: Stat }> = {
  name: 'get',
  write: false,
  read: (reader) => ({ data: reader.buffer(), stat: readStat(reader) }),
};
export const SET: Operation<Stat> = { name: 'set', write: true, read: readStat };
export const CHILDREN: Operation<{ children: readonly string[]; stat: Stat }> = {
  name: 'children',
  write: false,
  read: (reader) => ({ children: reader.texts(), stat: readStat(reader) }),
};
export const SYNC: Operation<void> = { name: 'sync', write: false, read: () => undefined };
export const GET_ACL: Operation<{ acl: readonly Acl[]; stat: Stat }> = {
  name: 'getAcl',
  write: false,
  read: (reader) => ({ acl: readAcl(reader), stat: readStat(reader) }),
};
export const SET_ACL: Operation<Stat> = { name: 'setAcl', write: true, read: readStat };
/** Smallest size of an identity, with empty texts. */
const IDENTITY_BYTES = 8;
export const WHO_AM_I: Operation<readonly Identity[]> = {
  name: 'whoAmI',
  write: false,
  read: (reader) => {
    const count = reader.count('a list of identities', IDENTITY_BYTES);
    return Array.from({ length: count }, () => ({ scheme: reader.text(), user: reader.text() }));
  },
};
export function ephemeralsOperation(chroot: Chroot): Operation<readonly string[]> {
  return {
    name: 'getEphemerals',
    write: false,
    read: (reader) =>
      reader
        .texts()
        .map((path) => chroot.toClient(path))
        .filter((path) => path !== undefined),
  };
}
export const COUNT_DESCENDANTS: Operation<number> = {
  name: 'getAllChildrenNumber',
  write: false,
  read: (reader) => reader.int(),
};
/** Bypasses the pipeline: sent at the start of each connection, and when it is added. */
export const AUTH: Operation<void> = { name: 'auth', write: false, read: () => undefined };
export const ADD_WATCH: Operation<void> = {
  name: 'addWatch',
  write: false,
  connectionBound: true,
  read: () => undefined,
};
export const REMOVE_WATCHES: Operation<void> = {
  name: 'removeWatches',
  write: false,
  connectionBound: true,
  read: () => undefined,
};

/** A request without a body. */
export function emptyFrame(opcode: number): Buffer {
  begin(opcode);
  return finish();
}

/** A request with a path only. */
export function pathFrame(opcode: number, path: string): Buffer {
  begin(opcode).text(path);
  return finish();
}

/** A read that may set a one-shot watch. */
export function watchableFrame(opcode: number, path: string, watch: boolean): Buffer {
  const body = begin(opcode);
  body.text(path);
  body.boolean(watch);
  return finish();
}

export function createFrame(path: string, data: Uint8Array | undefined, options: CreateOptions | undefined): Buffer {
  writeCreation(begin(createOpcode(options?.mode)), path, data, options);
  return finish();
}

export function deleteFrame(path: string, version: number): Buffer {
  const body = begin(Opcode.delete);
  body.text(path);
  body.int(version);
  return finish();
}

export function setFrame(path: string, data: Uint8Array, version: number): Buffer {
  const body = begin(Opcode.setData);
  body.text(path);
  body.buffer(data);
  body.int(version);
  return finish();
}

export function setAclFrame(path: string, acl: readonly Acl[], version: number): Buffer {
  const body = begin(Opcode.setAcl);
  body.text(path);
  writeAcl(body, acl);
  body.int(version);
  return finish();
}

export function addWatchFrame(path: string, mode: PersistentWatch['mode']): Buffer {
  const body = begin(Opcode.addWatch);
  body.text(path);
  body.int(ADD_WATCH_MODE[mode]);
  return finish();
}

export function removeWatchesFrame(path: string, kind: WatchKind): Buffer {
  const body = begin(Opcode.removeWatches);
  body.text(path);
  body.int(WATCHER_TYPE[kind]);
  return finish();
}

export function closeSessionFrame(): Buffer {
  return emptyFrame(Opcode.closeSession);
}

export function pingFrame(): Buffer {
  begin(Opcode.ping, SpecialXid.ping);
  return finish();
}

export function authFrame(scheme: string, auth: Uint8Array): Buffer {
  const body = begin(Opcode.auth, SpecialXid.auth);
  body.int(0);
  body.text(scheme);
  body.buffer(auth);
  return finish();
}

export function connectFrame(request: ConnectRequest): Buffer {
  writer.reset();
  writeConnectRequest(writer, request);
  return writer.takeFrame();
}

/** Paths of watches, by kind. */
export interface WatchPaths {
  readonly data: readonly string[];
  readonly exist: readonly string[];
  readonly child: readonly string[];
  readonly persistent: readonly string[];
  readonly recursive: readonly string[];
}

/** Sets watches again. One-shot watches fire at once for changes after `relativeZxid`. */
export function setWatchesFrame(relativeZxid: bigint, paths: WatchPaths): Buffer {
  const persistent = paths.persistent.length + paths.recursive.length > 0;
  const body = begin(persistent ? Opcode.setWatches2 : Opcode.setWatches, SpecialXid.setWatches);
  body.long(relativeZxid);
  body.texts(paths.data);
  body.texts(paths.exist);
  body.texts(paths.child);
  if (persistent) {
    body.texts(paths.persistent);
    body.texts(paths.recursive);
  }
  return finish();
}

export function createOpcode(mode: CreateMode | undefined): number {
  switch (mode) {
    case 'container':
      return Opcode.createContainer;
    case 'persistent-ttl':
    case 'persistent-sequential-ttl':
      return Opcode.createTtl;
    case 'ephemeral':
    case 'ephemeral-sequential':
    case 'persistent':
    case 'persistent-sequential':
    case undefined:
      return Opcode.create2;
  }
}

/** Writes the body of a creation, alone or in a transaction. Throws `InvalidArgumentError`. */
export function writeCreation(
  body: JuteWriter,
  path: string,
  data: Uint8Array | undefined,
  options: CreateOptions | undefined,
): void {
  const mode = options?.mode ?? 'persistent';
  const ttlMs = options?.ttlMs;
  const hasTtl = createOpcode(mode) === Opcode.createTtl;
  if (hasTtl !== (ttlMs !== undefined)) {
    const message = `create ${path}: ttlMs must be given with the modes that end in "-ttl", and only with them; the mode is ${mode}`;
    throw new InvalidArgumentError('invalid-argument', message, { operation: 'create', path });
  }
  body.text(path);
  body.buffer(data ?? EMPTY);
  writeAcl(body, options?.acl ?? OPEN_ACL);
  body.int(CREATE_FLAGS[mode]);
  if (ttlMs === undefined) return;
  if (!Number.isInteger(ttlMs) || ttlMs < 1 || ttlMs > MAX_TTL_MS) {
    const message = `create ${path}: ttlMs must be an integer between 1 and ${MAX_TTL_MS}, not ${ttlMs}`;
    throw new InvalidArgumentError('invalid-argument', message, { operation: 'create', path });
  }
  body.long(BigInt(ttlMs));
}

/** Starts a request whose body another module writes; `finishFrame` ends it. */
export const beginFrame = begin;
export const finishFrame = finish;
