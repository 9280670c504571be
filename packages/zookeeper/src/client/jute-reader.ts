/**
 * Reads ZooKeeper's serialisation format ("jute"). The input is untrusted: every read beyond the message throws a
 * `ZooKeeperError` with code `protocol`.
 */

import { ZooKeeperError } from '../errors.js';

const EMPTY = Buffer.alloc(0);
const TWO_TO_32 = 2 ** 32;

/** A reusable reader: call `reset` for each message. */
export class JuteReader {
  private bytes: Buffer = EMPTY;
  private position = 0;
  private end = 0;

  /** Starts reading `bytes` from `start` up to `end`. */
  reset(bytes: Buffer, start = 0, end = bytes.length): this {
    this.bytes = bytes;
    this.position = start;
    this.end = end;
    return this;
  }

  /** Number of unread bytes. */
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

  /** Reads a 64-bit integer that a number can hold, such as a time in milliseconds. */
  longAsNumber(): number {
    const at = this.advance(8);
    return this.bytes.readInt32BE(at) * TWO_TO_32 + this.bytes.readUInt32BE(at + 4);
  }

  boolean(): boolean {
    const at = this.advance(1);
    return this.bytes.readUInt8(at) !== 0;
  }

  /** Reads a byte string. Returns a copy, which does not retain the message; empty if the byte string is missing. */
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

  /** Reads the number of elements of a vector. Each element has at least `elementBytes`. */
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
