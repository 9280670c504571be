/**
 * Writes ZooKeeper's serialisation format ("jute"): big-endian integers, byte strings and texts prefixed with a 32-bit
 * length (-1 if missing), vectors prefixed with a 32-bit count.
 */

import { viewOf } from './data-view.js';

/** Bytes of the length that precedes a message, a byte string or a text. */
const LENGTH_BYTES = 4;
/** Bytes of the chunk that holds the messages; a larger message gets a chunk of its own. */
const CHUNK_BYTES = 16 * 1024;
/** Upper limit of UTF-8 bytes per UTF-16 unit. */
const MAX_BYTES_PER_UNIT = 3;

/** A reusable writer: `reset`, write, and `take`. Messages follow each other in a chunk, so that none is copied. */
export class JuteWriter {
  private chunk = Buffer.allocUnsafeSlow(CHUNK_BYTES);
  /** A view of the chunk. A method that adds bytes can replace it. */
  view = viewOf(this.chunk);
  /** Place of the message in the chunk. */
  private start = 0;
  private end = 0;

  reset(): void {
    this.end = this.start;
  }

  /** Returns the bytes written since `reset`, which must not be modified. */
  take(): Buffer {
    const message = this.chunk.subarray(this.start, this.end);
    this.start = this.end;
    return message;
  }

  /** Overwrites the first integer with the number of bytes that follow it. Returns all bytes, like `take`. */
  takeFrame(): Buffer {
    this.view.setInt32(this.start, this.end - this.start - LENGTH_BYTES);
    return this.take();
  }

  int(value: number): void {
    const at = this.advance(4);
    this.view.setInt32(at, value);
  }

  long(value: bigint): void {
    const at = this.advance(8);
    this.view.setBigInt64(at, value);
  }

  boolean(value: boolean): void {
    const at = this.advance(1);
    this.view.setUint8(at, value ? 1 : 0);
  }

  buffer(value: Uint8Array): void {
    const at = this.advance(LENGTH_BYTES + value.length);
    this.view.setInt32(at, value.length);
    this.chunk.set(value, at + LENGTH_BYTES);
  }

  /** Writes bytes without their length. */
  bytes(value: Uint8Array): void {
    const at = this.advance(value.length);
    this.chunk.set(value, at);
  }

  text(value: string): void {
    const most = LENGTH_BYTES + value.length * MAX_BYTES_PER_UNIT;
    if (this.end + most > this.chunk.length) this.grow(most);
    const at = this.end + LENGTH_BYTES;
    const written = this.chunk.write(value, at);
    this.view.setInt32(this.end, written);
    this.end = at + written;
  }

  texts(values: readonly string[]): void {
    this.int(values.length);
    for (const value of values) this.text(value);
  }

  /** Adds `count` bytes. Returns their place in `view`, for values that are written together. */
  advance(count: number): number {
    if (this.end + count > this.chunk.length) this.grow(count);
    const at = this.end;
    this.end = at + count;
    return at;
  }

  /** Moves the message to a new chunk, which has room for `count` more bytes. */
  private grow(count: number): void {
    const size = this.end - this.start;
    const larger = Buffer.allocUnsafeSlow(Math.max(CHUNK_BYTES, (size + count) * 2));
    this.chunk.copy(larger, 0, this.start, this.end);
    this.chunk = larger;
    this.view = viewOf(larger);
    this.start = 0;
    this.end = size;
  }
}
