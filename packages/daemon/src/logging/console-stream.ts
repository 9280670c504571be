/**
 * A stream that writes all lines of one turn of the event loop to a console in one system call. Winston's console
 * transport writes each line on its own.
 */

import { Writable } from 'node:stream';

/** Ends without ending the console. Pending lines are written when the process exits. */
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
    // Without a listener, a console closed by its reader would end the process; the error cannot be reported anywhere.
    if (console.listenerCount('error') === 0) console.on('error', () => undefined);
    process.once('exit', this.flush);
  }

  override write(line: string): boolean {
    this.lines += line;
    if (!this.scheduled) {
      this.scheduled = true;
      setImmediate(this.flush);
    }
    return true;
  }

  override _final(done: () => void): void {
    process.removeListener('exit', this.flush);
    this.flush();
    done();
  }
}
