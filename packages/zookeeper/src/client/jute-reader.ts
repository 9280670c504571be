/**
 * Reads ZooKeeper's serialisation format. What it reads came from the network: every read is checked against the bytes
 * that are there, and anything that does not fit is a `ZooKeeperError` with code `protocol`.
 */

import { ZooKeeperError } from '../errors.js';

const EMPTY = Buffer.alloc(0);
const TWO_TO_32 = 2 ** 32;

/** One is used again and again: `reset` to the next message. */
export class JuteReader {
  private bytes: Buffer = EMPTY;
  private position = 0;
  private end = 0;

  /** From now on reads `bytes` from `start` up to `end`. */
  reset(bytes: Buffer, start = 0, end = bytes.length): this {
    this.bytes = bytes;
    this.position = start;
    this.end = end;
    return this;
  }

  /** Bytes that were not read yet. */
  get remaining(): number {
    return this.end - this.position;
  }

  int(): number {
    const at = this.advance(4);
    return this.bytes.readInt32BE(at);
  }

  long(): bigint {
    const at = this.advance(8);
    return this.bytes.readBigInt64BE(at);
  }

  /** A 64-bit integer that is known to be small enough for a number, such as a time in milliseconds. */
  longAsNumber(): number {
    const at = this.advance(8);
    return this.bytes.readInt32BE(at) * TWO_TO_32 + this.bytes.readUInt32BE(at + 4);
  }

  boolean(): boolean {
    const at = this.advance(1);
    return this.bytes.readUInt8(at) !== 0;
  }

  /** A copy: it does not keep the bytes around it in memory. A missing byte string is an empty one. */
  buffer(): Buffer {
    const length = this.lengthOf('a byte string', 1);
    const at = this.advance(length);
    if (length === 0) return EMPTY;
    const copy = Buffer.allocUnsafe(length);
    this.bytes.copy(copy, 0, at, at + length);
    return copy;
  }

  text(): string {
    const length = this.lengthOf('a text', 1);
    const at = this.advance(length);
    return this.bytes.toString('utf8', at, at + length);
  }

  texts(): string[] {
    const count = this.count('a list of texts', 4);
    const values = new Array<string>(count);
    for (let index = 0; index < count; index++) values[index] = this.text();
    return values;
  }

  /** The number of elements of a vector, each of which takes at least `elementBytes`. */
  count(what: string, elementBytes: number): number {
    return this.lengthOf(what, elementBytes);
  }

  private lengthOf(what: string, elementBytes: number): number {
    const length = this.int();
    if (length === -1) return 0;
    if (length < 0 || length * elementBytes > this.remaining) {
      throw new ZooKeeperError(
        'protocol',
        `malformed message: ${what} of length ${length} where ${this.remaining} bytes are left`,
      );
    }
    return length;
  }

  private advance(count: number): number {
    const at = this.position;
    if (count > this.end - at) {
      throw new ZooKeeperError('protocol', `malformed message: ends ${count - this.remaining} bytes too early`);
    }
    this.position = at + count;
    return at;
  }
}
