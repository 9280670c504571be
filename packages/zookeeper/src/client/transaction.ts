/** The request and the answer of a transaction (`multi`). */

import type { CreateMode, TransactionOp, TransactionResult } from '../api.js';
import { ZooKeeperError } from '../errors.js';
import type { Operation } from './call.js';
import type { JuteReader } from './jute-reader.js';
import type { JuteWriter } from './jute-writer.js';
import { beginFrame, createOpcode, finishFrame, writeCreation } from './operations.js';
import { validatePath, type Chroot } from './paths.js';
import { Opcode, readStat } from './protocol.js';
import { serverError, ServerCode } from './server-errors.js';

const ANY_VERSION = -1;
const NO_ERROR = -1;
/** The header of an operation or a result: its type, a flag at the end of the list, the error of a result. */
const HEADER_BYTES = 9;
const DONE_OFFSET = 4;
const ERROR_OFFSET = 5;

/** Returns the request. Throws `InvalidArgumentError` if an operation is invalid. */
export function transactionFrame(ops: readonly TransactionOp[], chroot: Chroot): Buffer {
  const body = beginFrame(Opcode.multi);
  ops.forEach((op) => writeOp(body, op, chroot));
  writeHeader(body, Opcode.error, true);
  return finishFrame();
}

/** Returns the operation that reads the answer to `ops`. */
export function transactionOperation(
  ops: readonly TransactionOp[],
  chroot: Chroot,
): Operation<readonly TransactionResult[]> {
  return { name: 'multi', write: true, read: (reader) => readResults(reader, ops, chroot) };
}

export function isSequential(mode: CreateMode | undefined): boolean {
  return mode?.includes('sequential') === true;
}

function writeHeader(body: JuteWriter, type: number, done: boolean): void {
  const at = body.advance(HEADER_BYTES);
  body.view.setInt32(at, type);
  body.view.setUint8(at + DONE_OFFSET, done ? 1 : 0);
  body.view.setInt32(at + ERROR_OFFSET, NO_ERROR);
}

function writeOp(body: JuteWriter, op: TransactionOp, chroot: Chroot): void {
  validatePath(op.path, op.type, op.type === 'create' && isSequential(op.options?.mode));
  const path = chroot.toServer(op.path);
  switch (op.type) {
    case 'create':
      writeHeader(body, createOpcode(op.options?.mode), false);
      writeCreation(body, path, op.data, op.options);
      return;
    case 'delete':
      writeHeader(body, Opcode.delete, false);
      body.text(path);
      body.int(op.version ?? ANY_VERSION);
      return;
    case 'set':
      writeHeader(body, Opcode.setData, false);
      body.text(path);
      body.buffer(op.data);
      body.int(op.version ?? ANY_VERSION);
      return;
    case 'check':
      writeHeader(body, Opcode.check, false);
      body.text(path);
      body.int(op.version ?? ANY_VERSION);
  }
}

function readResults(reader: JuteReader, ops: readonly TransactionOp[], chroot: Chroot): TransactionResult[] {
  const results: TransactionResult[] = [];
  let failure: ZooKeeperError | undefined;
  for (let index = 0; ; index++) {
    const at = reader.advance(HEADER_BYTES);
    const type = reader.view.getInt32(at);
    if (reader.view.getUint8(at + DONE_OFFSET) !== 0) break;
    const op = ops[index];
    if (op === undefined) throw new ZooKeeperError('protocol', `more than ${ops.length} results of a transaction`);
    if (type === Opcode.error) {
      failure = decisiveFailure(failure, reader.int(), op, index);
    } else {
      results.push(readResult(reader, type, op, chroot));
    }
  }
  if (failure !== undefined) throw failure;
  if (results.length !== ops.length) {
    throw new ZooKeeperError('protocol', `${results.length} results of a transaction of ${ops.length} operations`);
  }
  return results;
}

/**
 * Returns the decisive failure. A server marks operations before the failed one with code 0 and those after it as
 * "runtime inconsistency", which counts only if no operation has another code.
 */
function decisiveFailure(
  failure: ZooKeeperError | undefined,
  code: number,
  op: TransactionOp,
  index: number,
): ZooKeeperError | undefined {
  if (code === ServerCode.ok) return failure;
  if (failure !== undefined && failure.serverCode !== ServerCode.runtimeInconsistency) return failure;
  if (failure !== undefined && code === ServerCode.runtimeInconsistency) return failure;
  return serverError(code, { operation: op.type, path: op.path, operationIndex: index });
}

function readResult(reader: JuteReader, type: number, op: TransactionOp, chroot: Chroot): TransactionResult {
  switch (op.type) {
    case 'create': {
      const created = reader.text();
      const path = chroot.toClient(created) ?? created;
      // The answer to an old `create` has no stat.
      const hasStat = type === Opcode.create2 || type === Opcode.createContainer || type === Opcode.createTtl;
      return hasStat ? { type: 'create', path, stat: readStat(reader) } : { type: 'create', path };
    }
    case 'set':
      return { type: 'set', stat: readStat(reader) };
    case 'delete':
      return { type: 'delete' };
    case 'check':
      return { type: 'check' };
  }
}
