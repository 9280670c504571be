/**
 * Lines for a console: those of one turn of the event loop are written at once, since a console takes one system call per
 * write. Winston's console transport writes each line alone.
 */

import { Writable } from 'node:stream';

/** Ends without ending the console. What is left when the process exits is written then. */
export class ConsoleStream extends Writable {
  private lines = '';
  private scheduled = false;
  private readonly flush = (): void => {
    this.scheduled = false;
    if (this.lines === '') return;
    const { lines } = this;
    this.lines = '';
    this.console.write(lines);
  };

  constructor(private readonly console: NodeJS.WritableStream) {
    super({ decodeStrings: false, defaultEncoding: 'utf8' });
    // When nobody reads the console any more, there is nobody to tell; without a listener the process would end.
    if (console.listenerCount('error') === 0) console.on('error', () => undefined);
    process.once('exit', this.flush);
  }

  override _write(line: string, _encoding: string, done: () => void): void {
    this.lines += line;
    if (!this.scheduled) {
      this.scheduled = true;
      process.nextTick(this.flush);
    }
    done();
  }

  override _final(done: () => void): void {
    process.removeListener('exit', this.flush);
    this.flush();
    done();
  }
}
