/**
 * Reads ZooKeeper's serialisation format ("jute"). The input is untrusted: every read beyond the message throws a
 * `ZooKeeperError` with code `protocol`.
 */

import type { Stat } from '../api.js';
import { ZooKeeperError } from '../errors.js';

const EMPTY = Buffer.alloc(0);
const TWO_TO_32 = 2 ** 32;
const STAT_BYTES = 68;

/** A reusable reader: call `reset` for each message. */
export class JuteReader {
  private bytes: Buffer = EMPTY;
  private view = viewOf(EMPTY);
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

  stat(): Stat {
    const { view } = this;
    const at = this.advance(STAT_BYTES);
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
    return this.bytes.toString(undefined, at, at + length);
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

  /** Skips values that are not needed. */
  skip(bytes: number): void {
    this.advance(bytes);
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

function viewOf({ buffer, byteOffset, length }: Buffer): DataView {
  return new DataView(buffer, byteOffset, length);
}

/** Returns a 64-bit integer that a number can hold, such as a time in milliseconds. */
function longAsNumber(view: DataView, at: number): number {
  return view.getInt32(at) * TWO_TO_32 + view.getUint32(at + 4);
}
