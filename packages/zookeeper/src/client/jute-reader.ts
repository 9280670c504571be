/**
 * Reads ZooKeeper's serialisation format ("jute"). The input is untrusted: every read beyond the message throws a
 * `ZooKeeperError` with code `protocol`.
 */

import { ZooKeeperError } from '../errors.js';
import { viewOf } from './data-view.js';

const EMPTY = Buffer.alloc(0);

/** A reusable reader: call `reset` for each message. */
export class JuteReader {
  /** A view of the bytes that `reset` received. Its users read only at places that `advance` has returned. */
  view = viewOf(EMPTY);
  private bytes: Buffer = EMPTY;
  private position = 0;
  private end = 0;

  /** Starts reading `bytes` from `start` up to `end`. */
  reset(bytes: Buffer, start = 0, end = bytes.length): this {
    if (bytes !== this.bytes) {
      this.bytes = bytes;
      this.view = viewOf(bytes);
    }
    this.position = start;
    this.end = end;
    return this;
  }

  /** Number of unread bytes. */
  get remaining(): number {
    return this.end - this.position;
  }

  int(): number {
    return this.view.getInt32(this.advance(4));
  }

  long(): bigint {
    return this.view.getBigInt64(this.advance(8));
  }

  boolean(): boolean {
    return this.view.getUint8(this.advance(1)) !== 0;
  }

  /** Reads a byte string. Returns a copy, which does not retain the message; empty if the byte string is missing. */
  buffer(): Buffer {
    const length = this.count('a byte string', 1);
    if (length === 0) return EMPTY;
    const at = this.position;
    this.position = at + length;
    const copy = Buffer.allocUnsafe(length);
    this.bytes.copy(copy, 0, at, at + length);
    return copy;
  }

  text(): string {
    const length = this.count('a text', 1);
    const at = this.position;
    this.position = at + length;
    return this.bytes.toString(undefined, at, at + length);
  }

  texts(): string[] {
    const count = this.count('a list of texts', 4);
    const values = new Array<string>(count);
    for (let index = 0; index < count; index++) values[index] = this.text();
    return values;
  }

  /**
   * Reads the number of elements of a vector, or of bytes of a byte string or text; 0 if it is missing. Throws if the
   * message is too short for so many elements of at least `elementBytes`.
   */
  count(what: string, elementBytes: number): number {
    const length = this.view.getInt32(this.advance(4));
    if (length === -1) return 0;
    if (length < 0 || length * elementBytes > this.end - this.position) {
      throw new ZooKeeperError(
        'protocol',
        `malformed message: ${what} of length ${length} where ${this.remaining} bytes are left`,
      );
    }
    return length;
  }

  /** Skips `count` bytes. Returns their place in `view`, for values that are read together. */
  advance(count: number): number {
    const at = this.position;
    if (count > this.end - at) {
      throw new ZooKeeperError('protocol', `malformed message: ends ${count - this.remaining} bytes too early`);
    }
    this.position = at + count;
    return at;
  }
}
