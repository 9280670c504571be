/** Splits the byte stream of a connection into messages, each prefixed with its length in 32 bits. */

import { ZooKeeperError } from '../errors.js';

const HEADER_BYTES = 4;
/** Bytes. A larger message gets memory only as its bytes arrive, whatever length it announces. */
const FIRST_ALLOCATION = 64 * 1024;

/** Receives one message: the bytes of `buffer` from `start` up to `end`, valid only during the call. */
export type FrameHandler = (buffer: Buffer, start: number, end: number) => void;

export class FrameDecoder {
  /** The start of an incomplete message. */
  private partial: Buffer | undefined;
  private filled = 0;

  constructor(
    private readonly maxFrameBytes: number,
    private readonly onFrame: FrameHandler,
  ) {}

  /**
   * Passes on every message that the first `length` bytes of `chunk` complete. Throws (`protocol`) if a length is
   * negative or too large.
   */
  push(chunk: Buffer, length = chunk.length): void {
    let offset = this.partial === undefined ? 0 : this.completePartial(chunk, length);
    while (offset < length) {
      const available = length - offset;
      const frameBytes = available < HEADER_BYTES ? undefined : this.frameLength(chunk, offset);
      if (frameBytes === undefined || available < frameBytes) {
        this.keep(chunk, offset, length, frameBytes ?? HEADER_BYTES);
        return;
      }
      this.onFrame(chunk, offset + HEADER_BYTES, offset + frameBytes);
      offset += frameBytes;
    }
  }

  /** Adds the rest of the partial message. Returns the offset in `chunk` after it. */
  private completePartial(chunk: Buffer, length: number): number {
    let offset = 0;
    while (this.partial !== undefined && offset < length) {
      const wanted = this.filled < HEADER_BYTES ? HEADER_BYTES : this.frameLength(this.partial, 0);
      const count = Math.min(wanted - this.filled, length - offset);
      const target = this.room(this.partial, count, wanted);
      chunk.copy(target, this.filled, offset, offset + count);
      this.filled += count;
      offset += count;
      if (this.filled >= HEADER_BYTES && this.filled === this.frameLength(target, 0)) {
        const end = this.filled;
        this.partial = undefined;
        this.filled = 0;
        this.onFrame(target, HEADER_BYTES, end);
      }
    }
    return offset;
  }

  private keep(chunk: Buffer, offset: number, length: number, frameBytes: number): void {
    const partial = Buffer.allocUnsafe(Math.max(HEADER_BYTES, Math.min(frameBytes, FIRST_ALLOCATION), length - offset));
    this.filled = chunk.copy(partial, 0, offset, length);
    this.partial = partial;
  }

  private room(partial: Buffer, count: number, wanted: number): Buffer {
    const needed = this.filled + count;
    if (needed <= partial.length) return partial;
    const larger = Buffer.allocUnsafe(Math.min(wanted, Math.max(needed, partial.length * 2)));
    partial.copy(larger, 0, 0, this.filled);
    this.partial = larger;
    return larger;
  }

  /** Returns the length of the message at `offset`, including its header. */
  private frameLength(buffer: Buffer, offset: number): number {
    const length = buffer.readInt32BE(offset);
    if (length < 0 || length > this.maxFrameBytes) {
      throw new ZooKeeperError(
        'protocol',
        `the server announced a message of ${length} bytes; at most ${this.maxFrameBytes} are accepted (maxAnswerBytes)`,
      );
    }
    return HEADER_BYTES + length;
  }
}
