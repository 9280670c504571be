/**
 * Reads scalars as PyYAML's resolver and constructor do (YAML 1.1 with exceptions): `yes` is a boolean, `0755` is
 * octal, `1:30` is 90, and `1e3`, `08` and `y` are strings. Unlike in PyYAML, dates stay strings, and so do integers
 * that a JavaScript number cannot hold exactly.
 */

import type { ScalarTag } from 'yaml';

export type ScalarValue = null | boolean | number | string;

const NULL = /^(?:~|null|Null|NULL|)$/;
const TRUE = /^(?:yes|Yes|YES|true|True|TRUE|on|On|ON)$/;
const BOOLEAN = /^(?:yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$/;
const INTEGER =
  /^[-+]?(?:0b_*[01][01_]*|0[0-7_]+|0|[1-9][0-9_]*|0x_*[0-9a-fA-F][0-9a-fA-F_]*|[1-9][0-9_]*(?::[0-5]?[0-9])+)$/;
const FLOAT =
  /^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/;

function integerOf(text: string): number | string {
  const unsigned = text.replace(/^[-+]/, '').replaceAll('_', '');
  const magnitude = /^0[0-7]+$/.test(unsigned) ? parseInt(unsigned, 8) : sexagesimal(unsigned);
  if (!Number.isSafeInteger(magnitude)) return text;
  return text.startsWith('-') && magnitude !== 0 ? -magnitude : magnitude;
}

function floatOf(text: string): number {
  const unsigned = text.replace(/^[-+]/, '').replaceAll('_', '').toLowerCase();
  const sign = text.startsWith('-') ? -1 : 1;
  if (unsigned === '.inf') return sign * Infinity;
  return unsigned === '.nan' ? NaN : sign * sexagesimal(unsigned);
}

/** Returns the value of digits in base 60, separated by colons. */
function sexagesimal(unsigned: string): number {
  return unsigned.split(':').reduce((sum, part) => sum * 60 + Number(part), 0);
}

interface ScalarType {
  readonly name: string;
  readonly test: RegExp;
  /** Texts that an explicit tag accepts beyond those of an untagged scalar. */
  readonly alsoTagged?: RegExp;
  readonly valueOf: (text: string) => ScalarValue;
}

const TYPES: readonly ScalarType[] = [
  { name: 'null', test: NULL, alsoTagged: /^/, valueOf: () => null },
  { name: 'bool', test: BOOLEAN, valueOf: (text) => TRUE.test(text) },
  { name: 'int', test: INTEGER, valueOf: integerOf },
  { name: 'float', test: FLOAT, alsoTagged: /^[-+]?[0-9][0-9_]*(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?$/, valueOf: floatOf },
];

const TAG_PREFIX = 'tag:yaml.org,2002:';

/** Returns the tags for the `yaml` library: each type once for untagged plain scalars, and once for explicit tags. */
export function scalarTags(): ScalarTag[] {
  return TYPES.flatMap(({ name, test, valueOf }) => {
    const tag = `${TAG_PREFIX}${name}`;
    return [
      { tag, resolve: valueOf },
      { tag, default: true, test, resolve: valueOf },
    ];
  });
}

/** Returns true if a scalar with this explicit tag can be read. */
export function fitsTag(tag: string, text: string): boolean {
  if (tag === '!' || tag === `${TAG_PREFIX}str`) return true;
  const type = TYPES.find(({ name }) => tag === `${TAG_PREFIX}${name}`);
  return type !== undefined && (type.test.test(text) || type.alsoTagged?.test(text) === true);
}
