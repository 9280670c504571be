import { LineCounter } from 'yaml';

/** Line and column, both counted from 1. */
export interface LinePosition {
  readonly line: number;
  readonly column: number;
}

/** Converts offsets of a text to lines and columns. */
export class LineIndex {
  private readonly counter = new LineCounter();

  constructor(text: string) {
    this.counter.addNewLine(0);
    for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) this.counter.addNewLine(at + 1);
  }

  position(offset: number): LinePosition {
    const { line, col } = this.counter.linePos(offset);
    return { line, column: col };
  }
}
