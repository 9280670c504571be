/** Splits the byte stream of a connection into messages, each prefixed with its length in 32 bits. */

import { ZooKeeperError } from '../errors.js';
import { viewOf } from './data-view.js';

const EMPTY = Buffer.alloc(0);
const HEADER_BYTES = 4;
/** Bytes. A larger message gets memory only as its bytes arrive, whatever length it announces. */
const FIRST_ALLOCATION = 64 * 1024;

export interface FrameHandler {
  /** Receives one message: the bytes of `buffer` from `start` up to `end`, valid only during the call. */
  onFrame(buffer: Buffer, start: number, end: number): void;
}

export class FrameDecoder {
  /** The start of an incomplete message. */
  private partial: Buffer | undefined;
  private filled = 0;
  /** The last chunk. A connection reads all chunks into the same buffer, so that one view serves them all. */
  private chunk: Buffer = EMPTY;
  private view = viewOf(EMPTY);
  private stopped = false;

  constructor(
    private readonly maxFrameBytes: number,
    private readonly handler: FrameHandler,
  ) {}

  /** Passes on every message that the first `length` bytes of `chunk` complete. Throws (`protocol`) for bad lengths. */
  push(chunk: Buffer, length = chunk.length): void {
    if (chunk !== this.chunk) {
      this.chunk = chunk;
      this.view = viewOf(chunk);
    }
    let offset = this.partial === undefined ? 0 : this.completePartial(chunk, length);
    while (offset < length && !this.stopped) {
      const available = length - offset;
      const frameBytes = available < HEADER_BYTES ? undefined : this.frameBytes(this.view.getInt32(offset));
      if (frameBytes === undefined || available < frameBytes) {
        this.keep(chunk, offset, length, frameBytes ?? HEADER_BYTES);
        return;
      }
      this.handler.onFrame(chunk, offset + HEADER_BYTES, offset + frameBytes);
      offset += frameBytes;
    }
  }

  /** Passes on no further message, not even those that a `push` in progress has not reached. */
  stop(): void {
    this.stopped = true;
    this.partial = undefined;
  }

  /** Adds the rest of the partial message. Returns the offset in `chunk` after it. */
  private completePartial(chunk: Buffer, length: number): number {
    let offset = 0;
    while (this.partial !== undefined && offset < length) {
      const wanted = this.filled < HEADER_BYTES ? HEADER_BYTES : this.frameBytes(this.partial.readInt32BE());
      const count = Math.min(wanted - this.filled, length - offset);
      const target = this.room(this.partial, count, wanted);
      chunk.copy(target, this.filled, offset, offset + count);
      this.filled += count;
      offset += count;
      if (this.filled >= HEADER_BYTES && this.filled === this.frameBytes(target.readInt32BE())) {
        const end = this.filled;
        this.partial = undefined;
        this.filled = 0;
        this.handler.onFrame(target, HEADER_BYTES, end);
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

  /** Returns the size of a message that announces `length`, including its header. */
  private frameBytes(length: number): number {
    if (length < 0 || length > this.maxFrameBytes) {
      throw new ZooKeeperError(
        'protocol',
        `the server announced a message of ${length} bytes; at most ${this.maxFrameBytes} are accepted (maxAnswerBytes)`,
      );
    }
    return HEADER_BYTES + length;
  }
}
