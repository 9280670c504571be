/**
 * Writes ZooKeeper's serialisation format ("jute"): big-endian integers, byte strings and texts prefixed with a 32-bit
 * length (-1 if missing), vectors prefixed with a 32-bit count.
 */

/** Bytes of the chunk that holds the messages; a larger message gets a chunk of its own. */
const CHUNK_BYTES = 16 * 1024;
/** Upper limit of UTF-8 bytes per UTF-16 unit. */
const MAX_BYTES_PER_UNIT = 3;

/**
 * A reusable writer: call `reset`, write, and call `take`. Messages follow each other in a chunk, so that none is
 * copied.
 */
export class JuteWriter {
  private chunk = Buffer.allocUnsafeSlow(CHUNK_BYTES);
  private view = viewOf(this.chunk);
  /** Place of the message in the chunk. */
  private start = 0;
  private end = 0;

  reset(): void {
    this.end = this.start;
  }

  /** Number of bytes written since `reset`. */
  get size(): number {
    return this.end - this.start;
  }

  /** Returns the bytes written since `reset`, which must not be modified. */
  take(): Buffer {
    const message = this.chunk.subarray(this.start, this.end);
    this.start = this.end;
    return message;
  }

  int(value: number): void {
    const at = this.advance(4);
    this.view.setInt32(at, value);
  }

  /** Overwrites an earlier integer. */
  intAt(offset: number, value: number): void {
    this.view.setInt32(this.start + offset, value);
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
    this.int(value.length);
    this.bytes(value);
  }

  /** Writes bytes without their length. */
  bytes(value: Uint8Array): void {
    const at = this.advance(value.length);
    this.chunk.set(value, at);
  }

  text(value: string): void {
    this.reserve(4 + value.length * MAX_BYTES_PER_UNIT);
    const at = this.end + 4;
    const written = this.chunk.write(value, at);
    this.view.setInt32(this.end, written);
    this.end = at + written;
  }

  texts(values: readonly string[]): void {
    this.int(values.length);
    for (const value of values) this.text(value);
  }

  /** Returns the place of the next `count` bytes. May replace the chunk and its view. */
  private advance(count: number): number {
    this.reserve(count);
    const at = this.end;
    this.end = at + count;
    return at;
  }

  /** Moves the message to a new chunk if there is not enough room behind it. */
  private reserve(count: number): void {
    const needed = this.end + count;
    if (needed <= this.chunk.length) return;
    const { size } = this;
    const larger = Buffer.allocUnsafeSlow(Math.max(CHUNK_BYTES, (size + count) * 2));
    this.chunk.copy(larger, 0, this.start, this.end);
    this.chunk = larger;
    this.view = viewOf(larger);
    this.start = 0;
    this.end = size;
  }
}

function viewOf({ buffer, byteOffset, length }: Buffer): DataView {
  return new DataView(buffer, byteOffset, length);
}
