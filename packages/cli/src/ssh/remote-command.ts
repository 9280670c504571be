/** The command line that sshd passes to the user's shell on a node, and the marks that report its start and its end. */

import { posix, quote } from '@nodepool/daemon/ssh';
import { Transform, type TransformCallback } from 'node:stream';

/**
 * Returns a command line that prints `MARK started PID` and `MARK ended STATUS` to stderr around the command. The pid
 * is that of the process group, because sshd starts each command in a session of its own. The shell survives signals
 * to the group, in order to report the status. `setup` is a script that runs before the start.
 */
export function markedCommand(
  mark: string,
  command: readonly string[],
  env: ReadonlyMap<string, string>,
  setup?: string,
): string {
  const script = [
    ...(setup === undefined ? [] : [setup]),
    `printf '%s started %s\\n' ${mark} "$$" >&2`,
    'trap : HUP INT QUIT TERM',
    ...[...env].map(([name, value]) => `${name}=${quote(value)}; export ${name}`),
    command.map(quote).join(' '),
    'status=$?',
    `printf '%s ended %s\\n' ${mark} "$status" >&2`,
    'exit "$status"',
  ].join('\n');
  return posix(script);
}

/** Returns a script that sends a signal to the process group of a marked command, if that still runs. */
export function signalScript(signal: string, pid: number): string {
  return `kill -s ${signal.replace(/^SIG/, '')} -- -${pid} 2>/dev/null || true`;
}

/** Passes stderr of a marked command on, without its marks. */
export class MarkFilter extends Transform {
  /** Process group of the command; undefined before its start. */
  pid: number | undefined;
  /** Exit status; undefined until the command has ended. */
  status: number | undefined;
  private pending = Buffer.alloc(0);
  private readonly mark: Buffer;

  constructor(mark: string) {
    super();
    this.mark = Buffer.from(mark);
  }

  override _transform(chunk: Buffer, _encoding: string, done: TransformCallback): void {
    this.pending = Buffer.concat([this.pending, chunk]);
    for (;;) {
      const at = this.pending.indexOf(this.mark);
      this.pass(at < 0 ? this.pending.length - this.beginningOfMark() : at);
      const end = at < 0 ? -1 : this.pending.indexOf('\n');
      if (end < 0) break;
      this.note(this.pending.subarray(this.mark.length, end).toString());
      this.pending = this.pending.subarray(end + 1);
    }
    done();
  }

  override _flush(done: TransformCallback): void {
    this.pass(this.pending.length);
    done();
  }

  private pass(length: number): void {
    if (length > 0) this.push(this.pending.subarray(0, length));
    this.pending = this.pending.subarray(length);
  }

  /** Returns the number of bytes at the end that may be the beginning of a mark. */
  private beginningOfMark(): number {
    const longest = Math.min(this.pending.length, this.mark.length - 1);
    for (let length = longest; length > 0; length--) {
      if (this.pending.subarray(-length).equals(this.mark.subarray(0, length))) return length;
    }
    return 0;
  }

  private note(words: string): void {
    const [, event, number] = /^ (started|ended) (\d+)$/.exec(words) ?? [];
    if (event === 'started') this.pid = Number(number);
    if (event === 'ended') this.status = Number(number);
  }
}

/** Puts a prefix in front of each line, and completes the last one. */
export class LinePrefixer extends Transform {
  private pending = Buffer.alloc(0);

  constructor(private readonly prefix: string) {
    super();
  }

  override _transform(chunk: Buffer, _encoding: string, done: TransformCallback): void {
    this.pending = Buffer.concat([this.pending, chunk]);
    for (let end = this.pending.indexOf('\n'); end >= 0; end = this.pending.indexOf('\n')) {
      this.push(Buffer.concat([Buffer.from(this.prefix), this.pending.subarray(0, end + 1)]));
      this.pending = this.pending.subarray(end + 1);
    }
    done();
  }

  override _flush(done: TransformCallback): void {
    if (this.pending.length > 0) this.push(Buffer.concat([Buffer.from(this.prefix), this.pending, Buffer.from('\n')]));
    done();
  }
}
