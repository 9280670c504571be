/**
 * Writes ZooKeeper's serialisation format ("jute"): big-endian integers, byte strings and texts prefixed with a 32-bit
 * length (-1 if missing), vectors prefixed with a 32-bit count.
 */

const INITIAL_BYTES = 16 * 1024;
/** Bytes. `reset` replaces a buffer that a large request made larger than this. */
const KEPT_BYTES = 256 * 1024;
/** Upper limit of UTF-8 bytes per UTF-16 unit. */
const MAX_BYTES_PER_UNIT = 3;

/** A reusable writer: call `reset`, write, and call `take`. */
export class JuteWriter {
  private bytes = Buffer.allocUnsafe(INITIAL_BYTES);
  private length = 0;

  reset(): void {
    this.length = 0;
    if (this.bytes.length > KEPT_BYTES) this.bytes = Buffer.allocUnsafe(INITIAL_BYTES);
  }

  /** Number of bytes written since `reset`. */
  get size(): number {
    return this.length;
  }

  /** Returns a copy of the bytes written since `reset`. */
  take(): Buffer {
    const copy = Buffer.allocUnsafe(this.length);
    this.bytes.copy(copy, 0, 0, this.length);
    return copy;
  }

  int(value: number): void {
    this.reserve(4);
    this.length = this.bytes.writeInt32BE(value, this.length);
  }

  /** Overwrites an earlier integer. */
  intAt(offset: number, value: number): void {
    this.bytes.writeInt32BE(value, offset);
  }

  long(value: bigint): void {
    this.reserve(8);
    this.length = this.bytes.writeBigInt64BE(value, this.length);
  }

  boolean(value: boolean): void {
    this.reserve(1);
    this.length = this.bytes.writeUInt8(value ? 1 : 0, this.length);
  }

  buffer(value: Uint8Array): void {
    this.int(value.length);
    this.reserve(value.length);
    this.bytes.set(value, this.length);
    this.length += value.length;
  }

  text(value: string): void {
    this.reserve(4 + value.length * MAX_BYTES_PER_UNIT);
    const written = this.bytes.write(value, this.length + 4, 'utf8');
    this.bytes.writeInt32BE(written, this.length);
    this.length += 4 + written;
  }

  texts(values: readonly string[]): void {
    this.int(values.length);
    for (const value of values) this.text(value);
  }

  private reserve(count: number): void {
    const needed = this.length + count;
    if (needed <= this.bytes.length) return;
    const larger = Buffer.allocUnsafe(Math.max(needed, this.bytes.length * 2));
    this.bytes.copy(larger, 0, 0, this.length);
    this.bytes = larger;
  }
}
