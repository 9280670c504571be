/** The server's side of the client protocol: decodes requests and encodes answers. See `client/protocol.ts`. */

import type { CreateMode, ReadOp, Stat, WatchEvent, WatchKind } from '../api.js';
import type { JuteReader } from '../client/jute-reader.js';
import { JuteWriter } from '../client/jute-writer.js';
import type { ConnectRequest, ConnectResponse } from '../client/protocol.js';
import { CREATE_FLAGS, Opcode, readAcl, SpecialXid, WATCHER_TYPE, writeAcl } from '../client/protocol.js';
import { ZooKeeperError } from '../errors.js';
import type { AnswerValue, ReadAnswer, Request, WriteRequest, WriteResult } from './messages.js';

/** Shared: no message is interrupted between `reset` and `take`. */
const writer = new JuteWriter();
const MODES = new Map(Object.entries(CREATE_FLAGS).map(([mode, flags]) => [flags, mode as CreateMode]));
const KINDS = new Map(Object.entries(WATCHER_TYPE).map(([kind, type]) => [type as number, kind as WatchKind]));
const EVENT_TYPES = { created: 1, deleted: 2, changed: 3, children: 4, 'watch-removed': -2 } as const;
const SYNC_CONNECTED = 3;
const RUNTIME_INCONSISTENCY = -2;
/** `OpCode.create`, whose answer has no stat. */
const PLAIN_CREATE = 1;

export function readConnectRequest(reader: JuteReader): ConnectRequest {
  reader.int(); // protocol version
  return {
    lastZxid: reader.long(),
    timeoutMs: reader.int(),
    sessionId: reader.long(),
    password: reader.buffer(),
    readOnly: reader.boolean(),
  };
}

/** Reads a request. Throws `ZooKeeperError` (`protocol`) if it is malformed. */
export function readRequest(reader: JuteReader): { readonly xid: number; readonly request: Request } {
  const xid = reader.int();
  const opcode = reader.int();
  return { xid, request: readBody(reader, opcode) };
}

function readBody(reader: JuteReader, opcode: number): Request {
  switch (opcode) {
    case Opcode.ping:
      return { type: 'ping' };
    case Opcode.auth:
      reader.int(); // always 0
      return { type: 'auth', scheme: reader.text(), auth: reader.buffer() };
    case Opcode.closeSession:
      return { type: 'close' };
    case Opcode.whoAmI:
      return { type: 'whoAmI' };
    case Opcode.getEphemerals:
      return { type: 'ephemerals', path: reader.text() };
    case Opcode.getAllChildrenNumber:
      return { type: 'countDescendants', path: reader.text() };
    case Opcode.multiRead:
      return { type: 'multiRead', ops: readReads(reader) };
    case Opcode.exists:
      return { type: 'exists', path: reader.text(), watch: reader.boolean() };
    case Opcode.getData:
      return { type: 'get', path: reader.text(), watch: reader.boolean() };
    case Opcode.getChildren2:
      return { type: 'children', path: reader.text(), watch: reader.boolean() };
    case Opcode.getAcl:
      return { type: 'getAcl', path: reader.text() };
    case Opcode.setAcl:
      return { type: 'setAcl', path: reader.text(), acl: readAcl(reader), version: reader.int() };
    case Opcode.sync:
      return { type: 'sync', path: reader.text() };
    case Opcode.addWatch:
      return { type: 'addWatch', path: reader.text(), recursive: reader.int() === 1 };
    case Opcode.removeWatches:
      return { type: 'removeWatches', path: reader.text(), kind: KINDS.get(reader.int()) ?? 'any' };
    case Opcode.setWatches:
    case Opcode.setWatches2:
      return readWatches(reader, opcode === Opcode.setWatches2);
    case Opcode.multi:
      return { type: 'multi', ops: readOps(reader) };
    default:
      return readWrite(reader, opcode);
  }
}

function readWatches(reader: JuteReader, withPersistent: boolean): Request {
  return {
    type: 'setWatches',
    sinceZxid: reader.long(),
    data: reader.texts(),
    exist: reader.texts(),
    children: reader.texts(),
    persistent: withPersistent ? reader.texts() : [],
    recursive: withPersistent ? reader.texts() : [],
  };
}

function readOps(reader: JuteReader): WriteRequest[] {
  const ops: WriteRequest[] = [];
  for (;;) {
    const opcode = reader.int();
    const done = reader.boolean();
    reader.int(); // the error, of no meaning here
    if (done) return ops;
    ops.push(readWrite(reader, opcode));
  }
}

function readReads(reader: JuteReader): ReadOp[] {
  const ops: ReadOp[] = [];
  for (;;) {
    const opcode = reader.int();
    const done = reader.boolean();
    reader.int(); // the error, of no meaning here
    if (done) return ops;
    ops.push({ type: opcode === Opcode.getData ? 'get' : 'children', path: reader.text() });
    reader.boolean(); // a watch, which transactions do not set
  }
}

function readWrite(reader: JuteReader, opcode: number): WriteRequest {
  switch (opcode) {
    case Opcode.create2:
    case Opcode.createContainer:
    case Opcode.createTtl: {
      const path = reader.text();
      const data = reader.buffer();
      const acl = readAcl(reader);
      const mode = MODES.get(reader.int()) ?? 'persistent';
      return { type: 'create', path, data, acl, mode, ttlMs: opcode === Opcode.createTtl ? Number(reader.long()) : 0 };
    }
    case Opcode.delete:
      return { type: 'delete', path: reader.text(), version: reader.int() };
    case Opcode.setData:
      return { type: 'set', path: reader.text(), data: reader.buffer(), version: reader.int() };
    case Opcode.check:
      return { type: 'check', path: reader.text(), version: reader.int() };
    default:
      throw new ZooKeeperError('protocol', `the simulated server does not know requests of type ${opcode}`);
  }
}

export function connectResponse({ timeoutMs, sessionId, password, readOnly }: ConnectResponse): Buffer {
  writer.reset();
  writer.int(0); // protocol version
  writer.int(timeoutMs);
  writer.long(sessionId);
  writer.buffer(password);
  writer.boolean(readOnly);
  return writer.take();
}

export function eventMessage(event: WatchEvent): Buffer {
  header(SpecialXid.event, -1n, 0);
  writer.int(EVENT_TYPES[event.type]);
  writer.int(SYNC_CONNECTED);
  writer.text(event.path);
  return writer.take();
}

export function refusalMessage(xid: number, zxid: bigint, serverCode: number): Buffer {
  header(xid, zxid, serverCode);
  return writer.take();
}

export function answerMessage(xid: number, zxid: bigint, value: AnswerValue): Buffer {
  header(xid, zxid, 0);
  switch (value.type) {
    case 'none':
      break;
    case 'path':
      writer.text(value.path);
      break;
    case 'paths':
      writer.texts(value.paths);
      break;
    case 'count':
      writer.int(value.count);
      break;
    case 'identities':
      writer.int(value.identities.length);
      for (const { scheme, user } of value.identities) {
        writer.text(scheme);
        writer.text(user);
      }
      break;
    case 'reads':
      value.results.forEach(writeReadAnswer);
      opHeader(Opcode.error, true, -1);
      break;
    case 'created':
      writer.text(value.path);
      writeStat(value.stat);
      break;
    case 'stat':
      writeStat(value.stat);
      break;
    case 'data':
      writer.buffer(value.data);
      writeStat(value.stat);
      break;
    case 'children':
      writer.texts(value.children);
      writeStat(value.stat);
      break;
    case 'acl':
      writeAcl(writer, value.acl);
      writeStat(value.stat);
      break;
    case 'multi':
      value.ops.forEach((op, index) => writeResult(op, value.results[index]));
      opHeader(Opcode.error, true, -1);
      break;
    case 'multi-failed':
      writeFailures(value.count, value.index, value.serverCode);
      break;
  }
  return writer.take();
}

function header(xid: number, zxid: bigint, serverCode: number): void {
  writer.reset();
  writer.int(xid);
  writer.long(zxid);
  writer.int(serverCode);
}

function opHeader(opcode: number, done: boolean, error: number): void {
  writer.int(opcode);
  writer.boolean(done);
  writer.int(error);
}

function writeResult(op: WriteRequest, result: WriteResult | undefined): void {
  switch (op.type) {
    case 'create': {
      // In a transaction, the answer to a plain creation has no stat.
      const withStat = op.mode === 'container' || op.ttlMs > 0;
      opHeader(withStat ? Opcode.createContainer : PLAIN_CREATE, false, 0);
      writer.text(result?.path ?? op.path);
      if (withStat && result?.stat !== undefined) writeStat(result.stat);
      return;
    }
    case 'set':
      opHeader(Opcode.setData, false, 0);
      if (result?.stat !== undefined) writeStat(result.stat);
      return;
    case 'delete':
      opHeader(Opcode.delete, false, 0);
      return;
    case 'check':
      opHeader(Opcode.check, false, 0);
  }
}

function writeReadAnswer(answer: ReadAnswer): void {
  switch (answer.type) {
    case 'data':
      opHeader(Opcode.getData, false, 0);
      writer.buffer(answer.data);
      writeStat(answer.stat);
      return;
    case 'children':
      opHeader(Opcode.getChildren, false, 0);
      writer.texts(answer.children);
      return;
    case 'refused':
      opHeader(Opcode.error, false, answer.serverCode);
      writer.int(answer.serverCode);
  }
}

/** Marks the operations before the failed one with 0, and those after it as inconsistent. */
function writeFailures(count: number, failed: number, serverCode: number): void {
  for (let index = 0; index < count; index++) {
    const code = index < failed ? 0 : index === failed ? serverCode : RUNTIME_INCONSISTENCY;
    opHeader(Opcode.error, false, code);
    writer.int(code);
  }
  opHeader(Opcode.error, true, -1);
}

function writeStat(stat: Stat): void {
  writer.long(stat.czxid);
  writer.long(stat.mzxid);
  writer.long(BigInt(stat.ctime));
  writer.long(BigInt(stat.mtime));
  writer.int(stat.version);
  writer.int(stat.cversion);
  writer.int(stat.aversion);
  writer.long(stat.ephemeralOwner);
  writer.int(stat.dataLength);
  writer.int(stat.numChildren);
  writer.long(stat.pzxid);
}
