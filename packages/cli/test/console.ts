/** The captured output of a command. */
import type { Output } from '../src/index.js';

export class CapturedOutput implements Output {
  /** stdout. */
  printed = '';
  /** stderr. */
  noted = '';

  print(text: string): void {
    this.printed += this.printed === '' ? text : `\n${text}`;
  }

  note(text: string): void {
    this.noted += this.noted === '' ? text : `\n${text}`;
  }
}
