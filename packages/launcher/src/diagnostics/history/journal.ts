/**
 * Two files of JSON lines that survive a restart of the process. When the current file is large or a day old, it
 * replaces the previous file and a new one is started. Together they cover the last day, or less if the size limit is
 * reached.
 */

import { appendFile, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { reasonOf, type Clock, type Logger, type Timer } from '@nodepool/core';
import { isObject } from './history-bucket.js';

export const JOURNAL_VERSION = 1;
const FLUSH_MS = 10_000;
const MAX_BYTES = 8_000_000;
const MAX_AGE_MS = 24 * 3_600_000;
/** Limit of the lines that wait to be written; further lines are dropped. */
const MAX_PENDING = 50_000;

export interface JournalOptions {
  readonly directory: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly maxBytes?: number;
}

export class Journal {
  readonly file: string;
  private readonly earlier: string;
  private pending: string[] = [];
  private bytes = 0;
  /** Time at which the current file was started, milliseconds since the epoch. */
  private started = 0;
  private timer: Timer | undefined;
  private writing: Promise<void> = Promise.resolve();
  private failing = false;
  private closed = false;

  constructor(private readonly options: JournalOptions) {
    this.file = join(options.directory, 'launcher-history.jsonl');
    this.earlier = `${this.file}.1`;
  }

  /** Creates the directory and returns the objects of the files, oldest first. Rejects if the directory is unusable. */
  async load(): Promise<readonly unknown[]> {
    await mkdir(this.options.directory, { recursive: true, mode: 0o750 });
    const earlier = await this.read(this.earlier);
    const present = await this.read(this.file);
    if (present === undefined) await this.begin();
    else {
      this.bytes = present.bytes;
      this.started = present.started;
      if (present.torn) await appendFile(this.file, '\n');
    }
    return [...(earlier?.entries ?? []), ...(present?.entries ?? [])];
  }

  /** Appends an object in the background. */
  add(entry: object): void {
    if (this.closed || this.pending.length >= MAX_PENDING) return;
    this.pending.push(JSON.stringify(entry));
    this.timer ??= this.options.clock.schedule(FLUSH_MS, () => this.flush(), { background: true });
  }

  /** Resolves once everything is written, or could not be written. */
  async close(): Promise<void> {
    this.flush();
    this.closed = true;
    await this.writing;
  }

  private flush(): void {
    this.timer?.cancel();
    this.timer = undefined;
    const lines = this.pending;
    this.pending = [];
    if (lines.length > 0) this.writing = this.writing.then(() => this.write(`${lines.join('\n')}\n`));
  }

  private async write(text: string): Promise<void> {
    const { clock, log, maxBytes = MAX_BYTES } = this.options;
    try {
      if (this.bytes > maxBytes || clock.now() - this.started > MAX_AGE_MS) {
        await rename(this.file, this.earlier);
        await this.begin();
      }
      await appendFile(this.file, text);
      this.bytes += Buffer.byteLength(text);
      if (this.failing) log.info('The history can be written again', { file: this.file });
      this.failing = false;
    } catch (error) {
      if (!this.failing) log.warn('The history cannot be written; it is lost at the next restart', { error });
      this.failing = true;
    }
  }

  private async begin(): Promise<void> {
    this.started = this.options.clock.now();
    const header = `${JSON.stringify({ format: 'nodepool-history', version: JOURNAL_VERSION, begun: this.started })}\n`;
    await writeFile(this.file, header, { mode: 0o640 });
    this.bytes = header.length;
  }

  /** Returns undefined if the file does not exist, or was renamed because it is not a journal of this version. */
  private async read(file: string): Promise<FileContents | undefined> {
    const { log } = this.options;
    let text: string;
    try {
      text = await readFile(file, 'utf8');
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
    const [header = '', ...lines] = text.split('\n');
    const started = startOf(header);
    if (started === undefined) {
      const aside = `${file}.unreadable`;
      await rename(file, aside);
      log.warn('The history is not in the format of this version; a new one is started', { file, moved_to: aside });
      return undefined;
    }
    const entries: unknown[] = [];
    let skipped = 0;
    let reason = '';
    for (const line of lines) {
      if (line === '') continue;
      try {
        entries.push(JSON.parse(line));
      } catch (error) {
        skipped += 1;
        reason = reasonOf(error);
      }
    }
    if (skipped > 0) log.warn('Lines of the history are damaged and were skipped', { file, lines: skipped, reason });
    return { entries, started, bytes: Buffer.byteLength(text), torn: !text.endsWith('\n') };
  }
}

interface FileContents {
  readonly entries: readonly unknown[];
  readonly started: number;
  readonly bytes: number;
  /** True if the last line is incomplete because the process ended while it wrote. */
  readonly torn: boolean;
}

function startOf(header: string): number | undefined {
  try {
    const parsed: unknown = JSON.parse(header);
    if (!isObject(parsed) || parsed['format'] !== 'nodepool-history') return undefined;
    const { version, begun: started } = parsed;
    return version === JOURNAL_VERSION && typeof started === 'number' ? started : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function isMissing(error: unknown): boolean {
  return isObject(error) && error['code'] === 'ENOENT';
}
