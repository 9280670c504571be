/** The text of a configuration file, environment variables filled in, with the way back to the places in the file. */

import { LineIndex } from '@nodepool/pyyaml';

/** From 1, in characters of the file as it is on disk. */
export interface Position {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** A stretch of the filled-in text that stands for a placeholder of the file. */
interface Substitution {
  readonly variable: string;
  readonly start: number;
  readonly end: number;
  readonly originalStart: number;
  readonly originalEnd: number;
  readonly missing: boolean;
}

/** Only variables with this prefix can be referred to, so that a file can't pick up the rest of the environment. */
const PLACEHOLDER = /%\((NODEPOOL_\w*)\)/g;

export class SourceText {
  /** With `%(NODEPOOL_XXX)` replaced. What stands for a variable that is not set is a plain word, so that the rest still parses. */
  readonly text: string;
  private readonly substitutions: Substitution[] = [];
  private lines: LineIndex | undefined;

  /** `secret`: nothing of the contents may be shown. */
  constructor(
    readonly file: string,
    private readonly original: string,
    env: Environment,
    readonly secret: boolean,
  ) {
    let text = '';
    let copied = 0;
    for (const match of original.matchAll(PLACEHOLDER)) {
      const variable = match[1] ?? '';
      const value = env[variable];
      text += original.slice(copied, match.index);
      copied = match.index + match[0].length;
      const start = text.length;
      text += value ?? variable;
      const place = { variable, start, end: text.length, originalStart: match.index, originalEnd: copied };
      this.substitutions.push({ ...place, missing: value === undefined });
    }
    this.text = text + original.slice(copied);
  }

  /** Returns the variables without a value, and the offsets of `text` at which they were to be filled in. */
  missingVariables(): { readonly variable: string; readonly start: number }[] {
    return this.substitutions.filter(({ missing }) => missing).map(({ variable, start }) => ({ variable, start }));
  }

  /** Whether something between these offsets of `text` came out of the environment. */
  isSubstituted(start: number, end: number): boolean {
    return this.substitutions.some((each) => overlaps(each, start, end));
  }

  /** Returns the place in the file of an offset of `text`. */
  position(offset: number): Position {
    this.lines ??= new LineIndex(this.original);
    return { file: this.file, ...this.lines.position(this.originalOffset(offset)) };
  }

  private originalOffset(offset: number): number {
    let shift = 0;
    for (const each of this.substitutions) {
      if (offset < each.start) break;
      if (offset < each.end) return each.originalStart;
      shift = each.originalEnd - each.end;
    }
    return offset + shift;
  }
}

function overlaps(stretch: { start: number; end: number }, start: number, end: number): boolean {
  return stretch.start < end && start < stretch.end;
}
