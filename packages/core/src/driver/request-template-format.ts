/**
 * Formats of placeholders, e.g. `.0f` in `{request.created_time:.0f}`: the part of Python's format specifications that
 * fills a text up to a width, shortens a text, and rounds a number.
 */

/** Kind of a value, as far as it is known when the configuration is read. */
export type ValueKind = 'text' | 'number' | 'list' | 'any';

interface FormatParts {
  readonly fill: string;
  /** Default: texts to the left, numbers to the right. */
  readonly align: string | undefined;
  readonly width: number;
  readonly precision: number | undefined;
  readonly type: string;
}

const SPECIFICATION =
  /^(?:(?<fill>.)?(?<align>[<>^]))?(?<width>[1-9]\d{0,3})?(?:\.(?<precision>\d{1,3}))?(?<type>[fs])?$/su;
const SUPPORTED = 'use a width (>20, *<20, ^20), .Nf for a number, or .N for a text';
/** Limits on a result: its length in characters, and the digits after the point. */
const MAX_WIDTH = 1000;
const MAX_PRECISION = 100;
const DEFAULT_PRECISION = 6;

/** A format specification. Immutable. */
export class ValueFormat {
  private constructor(private readonly parts: FormatParts) {}

  /** Returns the format, or the reason why it cannot be applied to values of this kind. */
  static parse(text: string, kind: ValueKind): ValueFormat | { readonly reason: string } {
    const groups = SPECIFICATION.exec(text)?.groups;
    if (groups === undefined) return { reason: `"${text}" is not supported; ${SUPPORTED}` };
    const { fill = ' ', align, width = 0, precision, type = '' } = groups;
    const digits = precision === undefined ? undefined : Number(precision);
    const parts = { fill, align, width: Number(width), precision: digits, type };
    const reason = formatMismatch(parts, kind);
    return reason === undefined ? new ValueFormat(parts) : { reason };
  }

  /** Returns the formatted value; undefined if the format does not support values of this type. */
  apply(value: string | number | boolean): string | undefined {
    const { precision, type } = this.parts;
    if (typeof value === 'string') {
      const characters = Array.from(value).slice(0, precision);
      return type === 'f' ? undefined : this.pad(characters.join(''), characters.length, '<');
    }
    if (type === 's' || (type === '' && precision !== undefined)) return undefined;
    const number = Number(value);
    const text = type === 'f' ? number.toFixed(precision ?? DEFAULT_PRECISION) : pythonNumber(number);
    return this.pad(text, text.length, '>');
  }

  private pad(text: string, length: number, defaultAlign: '<' | '>'): string {
    const { fill, width, align = defaultAlign } = this.parts;
    const missing = Math.max(0, width - length);
    const before = align === '<' ? 0 : align === '>' ? missing : Math.floor(missing / 2);
    return fill.repeat(before) + text + fill.repeat(missing - before);
  }
}

/** Returns the reason why the format does not support values of this kind; undefined if it does. */
function formatMismatch({ type, width, precision }: FormatParts, kind: ValueKind): string | undefined {
  if (kind === 'list') return 'a list takes no format; take one of its items, e.g. {request.labels[0]:>10}';
  if (width > MAX_WIDTH) return `the width is more than ${MAX_WIDTH}`;
  if (precision !== undefined && precision > MAX_PRECISION) return `the precision is more than ${MAX_PRECISION}`;
  if (kind === 'text' && type === 'f') return '"f" applies only to numbers, and the value is a text';
  if (kind === 'number' && type === 's') return '"s" applies only to texts, and the value is a number';
  if (kind === 'number' && type === '' && precision !== undefined)
    return `".${precision}" applies only to texts; write .${precision}f`;
  return undefined;
}

/** Formats a number as Python does. Whole numbers have no point, since JSON does not distinguish `3.0` from `3`. */
export function pythonNumber(value: number): string {
  if (Number.isInteger(value)) return BigInt(value).toString();
  const [mantissa = '', exponent = ''] = value.toExponential().split('e');
  // A fraction of this size has fewer than 16 digits before its point, so only small ones need an exponent.
  return Number(exponent) < -4 ? `${mantissa}e-${exponent.slice(1).padStart(2, '0')}` : String(value);
}
