/**
 * Two files of JSON lines that survive a restart of the process. When the current file is large or a day old, it
 * replaces the previous file and a new one is started. Together they cover the last day, or less if the size limit is
 * reached.
 */

import { appendFile, mkdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { reasonOf, type Clock, type Logger, type Timer } from '@nodepool/core';
import { isObject } from './history-bucket.js';

const JOURNAL_VERSION = 1;
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
  /** The current file; undefined if the next write starts one. */
  private current: CurrentFile | undefined;
  /** True if the current file may end with an incomplete line, because a program was killed or the disk was full. */
  private torn = false;
  private timer: Timer | undefined;
  private writing: Promise<void> = Promise.resolve();
  private failing = false;
  private closed = false;
  /** True once another program has changed the current file. */
  private abandoned = false;

  constructor(private readonly options: JournalOptions) {
    this.file = join(options.directory, 'launcher-history.jsonl');
    this.earlier = `${this.file}.1`;
  }

  /** True if the last lines could be written. */
  get healthy(): boolean {
    return !this.failing && !this.abandoned;
  }

  /**
   * Creates the directory and returns the objects of the files, oldest first. Rejects if the files cannot be read;
   * logs a warning if they cannot be written.
   */
  async load(): Promise<readonly unknown[]> {
    await mkdir(this.options.directory, { recursive: true, mode: 0o750 });
    const earlier = await this.read(this.earlier);
    const present = await this.read(this.file);
    if (present !== undefined) this.current = { started: present.started, bytes: present.bytes };
    this.torn = present?.torn ?? false;
    await this.write('');
    return [...(earlier?.entries ?? []), ...(present?.entries ?? [])];
  }

  /** Appends an object in the background. */
  add(entry: object): void {
    if (this.closed || this.abandoned || this.pending.length >= MAX_PENDING) return;
    this.pending.push(JSON.stringify(entry));
    this.timer ??= this.options.clock.schedule(FLUSH_MS, () => void this.flush(), { background: true });
  }

  /** Resolves once everything is written, or could not be written. */
  flush(): Promise<void> {
    this.timer?.cancel();
    this.timer = undefined;
    const lines = this.pending;
    this.pending = [];
    if (lines.length > 0) this.writing = this.writing.then(() => this.write(`${lines.join('\n')}\n`));
    return this.writing;
  }

  /** Resolves as `flush` does. Later entries are dropped. */
  close(): Promise<void> {
    this.closed = true;
    return this.flush();
  }

  private async write(text: string): Promise<void> {
    const { log } = this.options;
    const { file } = this;
    if (this.abandoned) return;
    try {
      const current = await this.openFile();
      if (current === undefined) {
        this.abandoned = true;
        log.warn('Another program writes the history of this launcher; it is kept in memory only', { file });
        return;
      }
      const lines = this.torn ? `\n${text}` : text;
      this.torn = true;
      await appendFile(file, lines);
      this.torn = false;
      current.bytes += Buffer.byteLength(lines);
      if (this.failing) log.info('The history can be written again', { file });
      this.failing = false;
    } catch (error) {
      if (!this.failing) log.warn('The history cannot be written; it is lost at the next restart', { file, error });
      this.failing = true;
    }
  }

  /** Returns the file for the next lines, starting one if necessary; undefined if another program has changed it. */
  private async openFile(): Promise<CurrentFile | undefined> {
    const { clock, maxBytes = MAX_BYTES } = this.options;
    const { current } = this;
    const size = await sizeOf(this.file);
    if (current === undefined || size === undefined) return this.start();
    if (this.torn) current.bytes = size;
    if (size !== current.bytes) return undefined;
    if (size <= maxBytes && clock.now() - current.started <= MAX_AGE_MS) return current;
    await rename(this.file, this.earlier);
    return this.start();
  }

  /** Starts a file. After a failure, the next call replaces it, so that every file begins with a complete header. */
  private async start(): Promise<CurrentFile> {
    this.current = undefined;
    const started = this.options.clock.now();
    const header = `${JSON.stringify({ format: 'nodepool-history', version: JOURNAL_VERSION, begun: started })}\n`;
    await writeFile(this.file, header, { mode: 0o640 });
    this.torn = false;
    this.current = { started, bytes: header.length };
    return this.current;
  }

  /** Returns undefined if the file does not exist, is empty, or is of another version and was renamed. */
  private async read(file: string): Promise<FileContents | undefined> {
    const { log } = this.options;
    let data: Buffer;
    try {
      data = await readFile(file);
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
    if (data.length === 0) return undefined;
    const text = data.toString();
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
    return { entries, started, bytes: data.length, torn: !text.endsWith('\n') };
  }
}

interface CurrentFile {
  /** Time at which the file was started, milliseconds since the epoch. */
  readonly started: number;
  /** Expected size. */
  bytes: number;
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

/** Returns undefined if the file does not exist. */
async function sizeOf(file: string): Promise<number | undefined> {
  try {
    return (await stat(file)).size;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

function isMissing(error: unknown): boolean {
  return isObject(error) && error['code'] === 'ENOENT';
}
