/** Lines of text, compressed in memory. The oldest are dropped when they exceed a size or an age. */

import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Clock } from '@nodepool/core';

const compress = promisify(gzip);

/** Number of characters that are compressed together. */
const BLOCK_LENGTH = 250_000;

export interface CompressedLinesOptions {
  readonly clock: Clock;
  /** Limit of the compressed size, bytes. */
  readonly maxBytes: number;
  readonly maxAgeMs: number;
  /** Called with the error of a failed compression, whose lines are lost. */
  readonly onError: (error: unknown) => void;
}

interface Block {
  /** Time of the newest line, milliseconds since the epoch. */
  readonly until: number;
  readonly data: Buffer;
}

export class CompressedLines {
  private blocks: Block[] = [];
  private bytes = 0;
  private pending: string[] = [];
  private pendingLength = 0;
  /** Resolves once every full block is compressed. */
  private compressing: Promise<void> = Promise.resolve();
  /** Time from which on no line was dropped, milliseconds since the epoch. */
  since: number;

  constructor(private readonly options: CompressedLinesOptions) {
    this.since = options.clock.now();
  }

  add(line: string): void {
    this.pending.push(line);
    this.pendingLength += line.length + 1;
    if (this.pendingLength >= BLOCK_LENGTH) this.closeBlock();
  }

  /** Resolves with members of one gzip file, oldest first. */
  async read(): Promise<readonly Buffer[]> {
    await this.compressing;
    this.dropOld();
    const stored = this.blocks.map(({ data }) => data);
    return this.pending.length === 0 ? stored : [...stored, await compress(textOf(this.pending))];
  }

  private closeBlock(): void {
    const text = textOf(this.pending);
    const until = this.options.clock.now();
    this.pending = [];
    this.pendingLength = 0;
    this.compressing = this.compressing.then(async () => {
      try {
        const data = await compress(text);
        this.blocks.push({ until, data });
        this.bytes += data.length;
      } catch (error) {
        this.since = until;
        this.options.onError(error);
      }
      this.dropOld();
    });
  }

  private dropOld(): void {
    const { clock, maxBytes, maxAgeMs } = this.options;
    const oldest = clock.now() - maxAgeMs;
    for (let first = this.blocks[0]; first !== undefined; first = this.blocks[0]) {
      if (this.bytes <= maxBytes && first.until >= oldest) return;
      this.blocks.shift();
      this.bytes -= first.data.length;
      this.since = Math.max(this.since, first.until);
    }
  }
}

/** Resolves with the objects as JSON lines, compressed as a member of a gzip file. */
export function compressed(objects: readonly object[]): Promise<Buffer> {
  return compress(objects.map((each) => `${JSON.stringify(each)}\n`).join(''));
}

function textOf(lines: readonly string[]): string {
  return `${lines.join('\n')}\n`;
}
