/** The request and the answer of a read transaction (`multiRead`, ZooKeeper 3.6 and newer). */

import type { ReadOp, ReadResult } from '../api.js';
import { ZooKeeperError } from '../errors.js';
import type { Operation } from './call.js';
import type { JuteReader } from './jute-reader.js';
import { beginFrame, finishFrame } from './operations.js';
import { validatePath, type Chroot } from './paths.js';
import { Opcode, readStat } from './protocol.js';
import { serverError } from './server-errors.js';

const OPCODES = { get: Opcode.getData, children: Opcode.getChildren } as const;
const NO_ERROR = -1;

/** Returns the request. Throws `InvalidArgumentError` if a path is invalid. */
export function readTransactionFrame(ops: readonly ReadOp[], chroot: Chroot): Buffer {
  for (const op of ops) validatePath(op.path, op.type);
  const body = beginFrame(Opcode.multiRead);
  for (const op of ops) {
    body.int(OPCODES[op.type]);
    body.boolean(false);
    body.int(NO_ERROR);
    body.text(chroot.toServer(op.path));
    body.boolean(false); // no watch
  }
  body.int(Opcode.error);
  body.boolean(true);
  body.int(NO_ERROR);
  return finishFrame();
}

/** Returns the operation that reads the answer to `ops`. */
export function readTransactionOperation(ops: readonly ReadOp[]): Operation<readonly ReadResult[]> {
  return { name: 'multiRead', write: false, read: (reader) => readResults(reader, ops) };
}

function readResults(reader: JuteReader, ops: readonly ReadOp[]): ReadResult[] {
  const results: ReadResult[] = [];
  for (let index = 0; ; index++) {
    const type = reader.int();
    const done = reader.boolean();
    reader.int(); // the error again
    if (done) break;
    const op = ops[index];
    if (op === undefined) throw new ZooKeeperError('protocol', `more than ${ops.length} results of a transaction`);
    results.push(type === Opcode.error ? failure(reader.int(), op, index) : readResult(reader, op));
  }
  if (results.length !== ops.length) {
    throw new ZooKeeperError('protocol', `${results.length} results of a transaction of ${ops.length} reads`);
  }
  return results;
}

function failure(code: number, { type, path }: ReadOp, operationIndex: number): ReadResult {
  return { type: 'error', error: serverError(code, { operation: type, path, operationIndex }) };
}

function readResult(reader: JuteReader, op: ReadOp): ReadResult {
  switch (op.type) {
    case 'get':
      return { type: 'get', data: reader.buffer(), stat: readStat(reader) };
    case 'children':
      return { type: 'children', children: reader.texts() };
  }
}
