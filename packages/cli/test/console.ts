/** The captured output of a command. */
import type { Output } from '../src/index.js';

export class CapturedOutput implements Output {
  /** stdout. */
  printed = '';
  private errors = '';
  private endsWithNote = false;

  /** stderr, without a newline at the end. */
  get noted(): string {
    return this.errors.replace(/\n$/, '');
  }

  print(text: string): void {
    this.printed += this.printed === '' ? text : `\n${text}`;
  }

  note(text: string): void {
    this.errors += this.errors === '' || this.errors.endsWith('\n') ? text : `\n${text}`;
    this.endsWithNote = true;
  }

  /** Adds a piece of the stderr of another program, which can end within a line. */
  noteOutput(piece: string): void {
    this.errors += this.endsWithNote ? `\n${piece}` : piece;
    this.endsWithNote = false;
  }
}
