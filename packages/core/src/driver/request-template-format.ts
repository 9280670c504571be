/**
 * Format specifications of placeholders, e.g. `.0f` in `{request.created_time:.0f}`. Implements the part of Python's
 * format specification mini-language that applies to texts and numbers. Results equal those of Python, including ties
 * and exponents.
 */

/** Kind of a value, as far as it is known when the configuration is read. */
export type ValueKind = 'text' | 'integer' | 'float' | 'list' | 'any';

interface FormatParts {
  readonly fill: string;
  readonly align: '<' | '>' | '^' | '=' | undefined;
  /** Alignment of numbers if `align` is absent. A width that starts with 0 puts the zeros after the sign. */
  readonly numberAlign: '>' | '=';
  readonly sign: '+' | '-' | ' ';
  readonly prefix: boolean;
  readonly width: number;
  readonly grouping: '' | ',' | '_';
  readonly precision: number | undefined;
  readonly type: string;
}

const SPECIFICATION =
  /^(?:(?<fill>.)?(?<align>[<>=^]))?(?<sign>[-+ ])?(?<prefix>#)?(?<zero>0)?(?<width>\d{1,4})?(?<grouping>[,_])?(?:\.(?<precision>\d{1,3}))?(?<type>[a-zA-Z%])?$/su;

const INTEGER_TYPES = 'dxXob';
const FLOAT_TYPES = 'fFeEgG%';
const RADIX: Readonly<Record<string, number>> = { d: 10, x: 16, X: 16, o: 8, b: 2 };
/** Limits on a result: its length in characters, and the digits after the point. */
const MAX_WIDTH = 1000;
const MAX_PRECISION = 100;

/** A format specification. Immutable. */
export class ValueFormat {
  private constructor(private readonly parts: FormatParts) {}

  /** Returns the format, or the reason why it cannot be applied to values of this kind. */
  static parse(text: string, kind: ValueKind): ValueFormat | { readonly reason: string } {
    const groups = SPECIFICATION.exec(text)?.groups;
    if (groups === undefined) return { reason: `"${text}" is not a supported format of Python` };
    const { fill, align, sign, prefix, zero, width, grouping, precision, type = '' } = groups;
    const parts: FormatParts = {
      fill: fill ?? (zero === undefined ? ' ' : '0'),
      align: align as FormatParts['align'],
      numberAlign: align === undefined && zero !== undefined ? '=' : '>',
      sign: (sign ?? '-') as FormatParts['sign'],
      prefix: prefix !== undefined,
      width: Number(width ?? 0),
      grouping: (grouping ?? '') as FormatParts['grouping'],
      precision: precision === undefined ? undefined : Number(precision),
      type,
    };
    const reason = formatMismatch(parts, kind, sign !== undefined);
    return reason === undefined ? new ValueFormat(parts) : { reason };
  }

  /** Returns the formatted value; undefined if the format does not support values of this type. */
  apply(value: string | number | boolean): string | undefined {
    const { type } = this.parts;
    if (typeof value === 'string') return type === '' || type === 's' ? this.formatText(value) : undefined;
    const number = Number(value);
    if (type === 's' || (INTEGER_TYPES.includes(type) && type !== '' && !Number.isInteger(number))) return undefined;
    return this.formatNumber(number);
  }

  private formatText(value: string): string {
    const characters = Array.from(value);
    const shown = characters.slice(0, this.parts.precision ?? characters.length);
    return this.pad('', shown.join(''), shown.length, this.parts.align ?? '<');
  }

  private formatNumber(value: number): string {
    const { sign, prefix, fill, width, grouping, type } = this.parts;
    const align = this.parts.align ?? this.parts.numberAlign;
    const minus = value < 0 || Object.is(value, -0);
    const [digits, rest] = this.digitsOf(Math.abs(value));
    const mark = minus ? '-' : sign === '-' ? '' : sign;
    const head = prefix ? `${mark}0${type}` : mark;
    const size = RADIX[type] === undefined || type === 'd' ? 3 : 4;
    let whole = digits;
    if (grouping !== '' && fill === '0' && align === '=') {
      while (head.length + grouped(whole, grouping, size).length + rest.length < width) whole = `0${whole}`;
    }
    const body = grouped(whole, grouping, size) + rest;
    return this.pad(head, body, head.length + body.length, align);
  }

  /** Returns the digits before the point, and everything after them. */
  private digitsOf(value: number): readonly [string, string] {
    const { precision, type } = this.parts;
    const radix = RADIX[type];
    if (radix !== undefined) {
      const text = BigInt(value).toString(radix);
      return [type === 'X' ? text.toUpperCase() : text, ''];
    }
    const text = floatText(value, precision, type);
    const match = /^(\d+)(.*)$/s.exec(text);
    return [match?.[1] ?? text, match?.[2] ?? ''];
  }

  private pad(head: string, body: string, length: number, align: string): string {
    const { fill, width } = this.parts;
    const missing = Math.max(0, width - length);
    if (align === '=') return head + fill.repeat(missing) + body;
    const before = align === '<' ? 0 : align === '>' ? missing : Math.floor(missing / 2);
    return fill.repeat(before) + head + body + fill.repeat(missing - before);
  }
}

/** Returns the reason why the format does not support values of this kind; undefined if it does. */
function formatMismatch(parts: FormatParts, kind: ValueKind, hasSign: boolean): string | undefined {
  const { type, width, precision, align, grouping, prefix } = parts;
  if (kind === 'list') return 'a list takes no format; take one of its items, e.g. {request.labels[0]:>10}';
  if (width > MAX_WIDTH) return `the width is more than ${MAX_WIDTH}`;
  if (precision !== undefined && precision > MAX_PRECISION) return `the precision is more than ${MAX_PRECISION}`;
  const isInteger = type !== '' && INTEGER_TYPES.includes(type);
  const isFloat = type !== '' && FLOAT_TYPES.includes(type);
  if (type !== '' && type !== 's' && !isInteger && !isFloat) {
    return `"${type}" is not a supported type; use one of s, d, f, F, e, E, g, G, %, x, X, o, b`;
  }
  const isText = type === 's' || (kind === 'text' && type === '');
  if (isText && (hasSign || align === '=' || grouping !== '' || prefix))
    return 'signs, "=", "#" and grouping apply only to numbers';
  if (kind === 'text' && !isText) return `"${type}" applies only to numbers, and the value is a text`;
  if (kind !== 'text' && kind !== 'any' && type === 's') return '"s" applies only to texts, and the value is a number';
  if (kind === 'float' && isInteger)
    return `"${type}" applies only to whole numbers, and the value may have a fraction; write .0f`;
  if (isInteger || (kind === 'integer' && type === '')) {
    if (precision !== undefined) return 'a whole number takes no precision; write e.g. .2f';
  }
  if (prefix && (type === 'd' || !isInteger)) return '"#" applies only to x, X, o and b';
  if (grouping === ',' && isInteger && type !== 'd') return `"," does not apply to "${type}"; write _`;
  return undefined;
}

function grouped(digits: string, separator: string, size: number): string {
  if (separator === '') return digits;
  const first = digits.length % size;
  const groups = digits.slice(first).match(new RegExp(`.{${size}}`, 'g')) ?? [];
  return [...(first === 0 ? [] : [digits.slice(0, first)]), ...groups].join(separator);
}

/** Formats a non-negative number with a type of `FLOAT_TYPES` or without a type. */
function floatText(value: number, precision: number | undefined, type: string): string {
  const digits = precision ?? 6;
  if (type === '%') return `${fixed(value * 100, digits)}%`;
  if (type === 'f' || type === 'F') return fixed(value, digits);
  if (type === 'e' || type === 'E') return withExponent(decimal(value, digits), type);
  if (type === '' && precision === undefined) return pythonNumber(value);
  const significant = Math.max(1, digits);
  const { mantissa, exponent } = decimal(value, significant - 1);
  const limit = type === '' ? significant - 1 : significant;
  if (exponent < -4 || exponent >= limit) {
    return withExponent({ mantissa: mantissa.replace(/(?<=.)0+$/, ''), exponent }, type === 'G' ? 'E' : 'e');
  }
  const plain = fixed(value, Math.max(0, significant - 1 - exponent));
  const trimmed = plain.includes('.') ? plain.replace(/\.?0+$/, '') : plain;
  return type === '' && !Number.isInteger(value) && !trimmed.includes('.') ? `${trimmed}.0` : trimmed;
}

/** Formats a number as Python does. Whole numbers have no point, since JSON does not distinguish `3.0` from `3`. */
export function pythonNumber(value: number): string {
  if (Number.isInteger(value)) return BigInt(value).toString();
  const [mantissa = '', exponent = ''] = value.toExponential().split('e');
  // A fraction of this size has fewer than 16 digits before its point, so only small ones need an exponent.
  return Number(exponent) < -4 ? `${mantissa}e-${exponent.slice(1).padStart(2, '0')}` : String(value);
}

function fixed(value: number, digits: number): string {
  const text = scaled(value, digits)
    .toString()
    .padStart(digits + 1, '0');
  return digits === 0 ? text : `${text.slice(0, -digits)}.${text.slice(-digits)}`;
}

/** Returns the digits of a number: the first one before the point, then `digits` digits after it. */
function decimal(value: number, digits: number): { readonly mantissa: string; readonly exponent: number } {
  if (value === 0) return { mantissa: '0'.repeat(digits + 1), exponent: 0 };
  const shortest = value.toExponential();
  let exponent = Number(shortest.slice(shortest.indexOf('e') + 1));
  let mantissa = scaled(value, digits - exponent).toString();
  if (mantissa.length < digits + 1) {
    exponent -= 1;
    mantissa = scaled(value, digits - exponent).toString();
  }
  return mantissa.length > digits + 1
    ? { mantissa: mantissa.slice(0, -1), exponent: exponent + 1 }
    : { mantissa, exponent };
}

function withExponent({ mantissa, exponent }: { mantissa: string; exponent: number }, letter: string): string {
  const fraction = mantissa.length > 1 ? `.${mantissa.slice(1)}` : '';
  const power = String(Math.abs(exponent)).padStart(2, '0');
  return `${mantissa.slice(0, 1)}${fraction}${letter}${exponent < 0 ? '-' : '+'}${power}`;
}

/**
 * Returns `value` times ten to the power of `digits`, rounded to the nearest whole number, with ties rounded to even.
 */
function scaled(value: number, digits: number): bigint {
  const [numerator, denominator] = exact(value);
  const over = digits < 0 ? denominator * 10n ** BigInt(-digits) : denominator;
  const under = digits < 0 ? numerator : numerator * 10n ** BigInt(digits);
  const quotient = under / over;
  const twice = (under % over) * 2n;
  const up = twice > over || (twice === over && quotient % 2n === 1n);
  return up ? quotient + 1n : quotient;
}

/** Converts a non-negative number to an exact fraction. */
function exact(value: number): readonly [bigint, bigint] {
  let numerator = value;
  let denominator = 1n;
  while (!Number.isInteger(numerator)) {
    numerator *= 2;
    denominator *= 2n;
  }
  return [BigInt(numerator), denominator];
}
