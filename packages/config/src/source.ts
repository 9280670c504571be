/** The text of a configuration file with environment variables filled in, and the mapping back to the file. */

import { LineIndex } from '@nodepool/pyyaml';

/** Counted from 1, in characters of the file on disk. */
export interface Position {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** A range of the filled-in text that replaces a placeholder of the file. */
interface Substitution {
  readonly variable: string;
  readonly start: number;
  readonly end: number;
  readonly originalStart: number;
  readonly originalEnd: number;
  readonly missing: boolean;
}

/** Only variables with this prefix can be referenced, so that a file cannot read the rest of the environment. */
const PLACEHOLDER = /%\((NODEPOOL_\w*)\)/g;

export class SourceText {
  /** The text with `%(NODEPOOL_XXX)` replaced. A plain word replaces an unset variable, so that the rest parses. */
  readonly text: string;
  private readonly substitutions: Substitution[] = [];
  private lines: LineIndex | undefined;

  /** `secret`: no part of the contents may be shown. */
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

  /** Returns the unset variables and the offsets of their places in `text`. */
  missingVariables(): { readonly variable: string; readonly start: number }[] {
    return this.substitutions.filter(({ missing }) => missing).map(({ variable, start }) => ({ variable, start }));
  }

  /** Returns true if part of this range of `text` came from the environment. */
  isSubstituted(start: number, end: number): boolean {
    return this.substitutions.some((each) => overlaps(each, start, end));
  }

  /** Returns the position in the file of an offset of `text`. */
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
