/**
 * Unquoted scalars as PyYAML reads them, because that is what existing files were written for: YAML 1.1, in which `yes`
 * is a boolean and `0755` octal, but `1e3`, `y` and `n` are strings. Dates stay strings.
 */

const NULL = /^(?:~|null|Null|NULL|)$/;
const TRUE = /^(?:yes|Yes|YES|true|True|TRUE|on|On|ON)$/;
const FALSE = /^(?:no|No|NO|false|False|FALSE|off|Off|OFF)$/;
const BINARY = /^[-+]?0b[01_]+$/;
const OCTAL = /^[-+]?0[0-7_]+$/;
const DECIMAL = /^[-+]?(?:0|[1-9][0-9_]*)$/;
const HEXADECIMAL = /^[-+]?0x[0-9a-fA-F_]+$/;
const SEXAGESIMAL = /^[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+$/;
const FLOAT = /^[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+][0-9]+)?$/;
const INFINITE = /^[-+]?\.(?:inf|Inf|INF)$/;
const NOT_A_NUMBER = /^\.(?:nan|NaN|NAN)$/;

export type Scalar = null | boolean | number | string;

/** What an unquoted scalar says. */
export function resolvePlainScalar(source: string): Scalar {
  if (NULL.test(source)) return null;
  if (TRUE.test(source)) return true;
  if (FALSE.test(source)) return false;
  return resolveNumber(source) ?? source;
}

/** What `!!type scalar` says; undefined when the scalar isn't one of that type, or the type is unknown. */
export function resolveTaggedScalar(tag: string, source: string): Scalar | undefined {
  if (tag === '!' || tag === 'tag:yaml.org,2002:str') return source;
  const value = resolvePlainScalar(source);
  if (tag === 'tag:yaml.org,2002:null' && value === null) return value;
  if (tag === 'tag:yaml.org,2002:bool' && typeof value === 'boolean') return value;
  if (tag === 'tag:yaml.org,2002:int' && Number.isInteger(value)) return value;
  if (tag === 'tag:yaml.org,2002:float' && typeof value === 'number') return value;
  return undefined;
}

function resolveNumber(source: string): number | undefined {
  if (DECIMAL.test(source)) return exactly(source, Number(source.replaceAll('_', '')));
  if (FLOAT.test(source)) return Number(source.replaceAll('_', ''));
  const negative = source.startsWith('-');
  const digits = source.replace(/^[-+]/, '').replaceAll('_', '');
  const signed = (value: number): number => (negative ? -value : value);
  if (BINARY.test(source)) return signed(parseInt(digits.slice(2), 2));
  if (OCTAL.test(source)) return signed(parseInt(digits, 8));
  if (HEXADECIMAL.test(source)) return signed(parseInt(digits.slice(2), 16));
  if (SEXAGESIMAL.test(source)) return signed(digits.split(':').reduce((sum, part) => sum * 60 + Number(part), 0));
  if (INFINITE.test(source)) return signed(Infinity);
  if (NOT_A_NUMBER.test(source)) return NaN;
  return undefined;
}

/** Long ids made of digits only must not lose their last ones: they stay as they are written. */
function exactly(source: string, value: number): number | undefined {
  return Number.isSafeInteger(value) || source.length < 16 ? value : undefined;
}
