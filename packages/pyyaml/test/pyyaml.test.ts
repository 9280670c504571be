import { expect, test } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { LineIndex, parseYaml, parseYamlInParts, type YamlValue } from '../src/index.js';

const PYTHON = '/usr/bin/python3';

/** Returns PyYAML's results: values as JSON with special floats spelt out, or null if PyYAML refuses the text. */
function readByPyYaml(texts: readonly string[]): unknown[] {
  const program = `
import json, math, sys, yaml
def plain(value):
    if isinstance(value, float) and not math.isfinite(value): return "float:" + str(value)
    if isinstance(value, dict): return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list): return [plain(each) for each in value]
    return value
def read(text):
    try: return {"value": plain(yaml.safe_load(text))}
    except Exception: return None
print(json.dumps([read(text) for text in json.load(sys.stdin)]))`;
  return JSON.parse(
    execFileSync(PYTHON, ['-c', program], { input: JSON.stringify(texts), encoding: 'utf8' }),
  ) as unknown[];
}

function readByUs(text: string): unknown {
  const { document, problems } = parseYaml(text);
  return document === undefined || problems.length > 0 ? null : { value: plain(document.value) };
}

function plain(value: YamlValue): unknown {
  if (typeof value === 'number' && !Number.isFinite(value)) {
    return `float:${Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf'}`;
  }
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, plain(each)]));
  }
  return value;
}

const SCALARS = [
  ...['', '~', 'null', 'Null', 'nULL', 'yes', 'Yes', 'yEs', 'no', 'on', 'off', 'y', 'n', 'true', 'TRUE', 'tRue'],
  ...['0', '-0', '+1', '00', '0_', '1_000', '1__0', '_1', '-_1', '+-1', '--1', '08', '0o7', '0123', '-0123', '0_7'],
  ...[
    '0b1',
    '-0b101',
    '0b',
    '0b2',
    '0x1F',
    '-0x1f',
    '0x',
    '0x_f',
    '0xg',
    '1:30',
    '-1:30',
    '0:30',
    '01:30',
    '1:60',
    '5:99',
  ],
  ...[
    '190:20:30',
    '1:30.5',
    '-1:30.5',
    '9007199254740991',
    '1.',
    '0.',
    '.5',
    '-.5',
    '+.5',
    '._5',
    '0.1_0',
    '1_0.5',
    '.',
    '._',
  ],
  ...[
    '1e3',
    '1e+3',
    '1.e+3',
    '1.5e3',
    '1.5e+3',
    '1.5E-3',
    '+12e03',
    '86e12345',
    '685_230.15',
    '.inf',
    '-.INF',
    '+.inf',
    '.Inf',
  ],
  ...[
    '.nan',
    '.NaN',
    '+.nan',
    'nan',
    'inf',
    '=x',
    '2 apples',
    "'yes'",
    '"0123"',
    'a b',
    '- ',
    '|\n  yes\n',
    '>\n  0123\n',
  ],
];

const DOCUMENTS = [
  'a: 1\na: 2',
  'a: {b: 1, c: 2, b: {d: 3}}\nlist: [{x: 1, x: 2, x: 3}]',
  'm: &m {x: 1}\na: {x: 2, <<: *m, x: 3}\nb: {<<: *m, x: 4, x: ~}',
  'a: &a [1]\nb: *a\na: &c [2]\nd: *c',
  'base: &a {x: 1}\nboth: {<<: *a, y: 2}\nown: {x: 9, <<: *a}\nafter: {<<: *a, x: 9}',
  'a: &a {x: 1}\nb: &b {x: 2, y: 3}\nlist: {<<: [*a, *b]}\ntwice: {<<: *a, <<: *b}',
  'a: &a {x: {deep: 1}}\nb: &b {<<: *a, y: 2}\nc: {<<: *b, z: 3}',
  'a: &a {x: 1}\nquoted: {"<<": *a}',
  'a: &a {x: 1}\ntagged: {!!str <<: *a}\nvalue: {!!str <<: 5}',
  'a: &a {x: 1}\ntagged: {!!merge <<: *a}\nexplicit:\n  ? <<\n  : *a\nboth: {"<<": 3, <<: *a}',
  'a: &a {x: 1}\nb: &b {y: 2, <<: *a}\nc: &c {<<: *b, z: 3}\nd: {y: 9, <<: *c}',
  'a: &a {x: {p: 1}}\nreplaced, not merged: {<<: *a, x: {q: 2}}',
  'a: &a {x: 1, z: 0}\nb: &b {x: 2, y: 1}\nd: &d {x: 7, k: 1}\nc: {<<: [*a, *b], q: 1, <<: [*d, *a], z: 3}',
  'a: &a {x: 1}\nlist: &l [*a, {x: 2, y: 2}]\nc: {<<: *l}',
  'c: {<<: [{x: 1, <<: {x: 2, y: 3}}, {x: 4, k: 5, <<: [{k: 6}, {m: 7}]}]}',
  'a: &a {x: 1}\nc: {<<: [[*a]]}',
  'a: &a {x: 1}\nlist: &l [*a]\nc: {<<: [*l]}',
  'a: &a {x: 1}\n<<: *a',
  '<<: &a {x: 1}\nb: *a\nc: [*a]',
  'a: &a {x: 1}\nb: {c: &c {y: 2}, <<: [*a, *c]}',
  'b: &b {y: 2}\na: &a {x: *b}\n<<: {z: *a, <<: *a}\nc: {d: *b, e: &e {f: *a}, <<: *b, <<: *e}',
  'c: {<<: []}\nd: {<<: {}}',
  'c: {<<: ~}',
  'c: {<<: }',
  'a: &a {__proto__: 1, 1: x}\nb: {<<: *a, 1: y}',
  'a: &a [1, 2]\nb: *a\nc: &a [3]\nd: *a',
  '<<: {x: 1}\ny: 2',
  '<<: 5\ny: 2',
  '<<: [5]\ny: 2',
  'tagged: [!!float 3, !!int "0x1f", !!str 3, !!bool yes, !!null "", !!float .5, !!int 1:30]',
  '!!float abc',
  '!!int abc',
  '!unknown 1',
  'a: *missing',
  'a: [1, 2',
  '\tx: 1',
  'a: b: c',
  'text: "caf\\u00e9 \\x41"\nfolded: >-\n  one\n  two\n\n  three\nliteral: |+\n  x\n\n',
  '- a\n- - b\n  - c\n- {d: [e, f]}\n',
  '# nothing but a comment\n',
  '__proto__: {x: 1}\nconstructor: 2',
  '---\na: 1\n...\n',
  'a: 1\n---\nb: 2\n',
  '%YAML 1.1\n---\na: yes\n',
  '',
];

test('reads scalars as PyYAML does', () => {
  const texts = SCALARS.map((scalar) => `value: ${scalar}`);
  const expected = readByPyYaml(texts);
  expect(Object.fromEntries(texts.map((text) => [text, readByUs(text)]))).toEqual(
    Object.fromEntries(texts.map((text, index) => [text, expected[index]])),
  );
});

test('reads collections, aliases, merge keys and tags as PyYAML does, and rejects the same texts', () => {
  const expected = readByPyYaml(DOCUMENTS);
  expect(Object.fromEntries(DOCUMENTS.map((text) => [text, readByUs(text)]))).toEqual(
    Object.fromEntries(DOCUMENTS.map((text, index) => [text, expected[index]])),
  );
});

test('orders merged keys before the others, as PyYAML does', () => {
  const text = 'a: &a {x: 1, z: 0}\nb: &b {y: 2, <<: *a}\nc: {k: 1, z: 2, <<: *b, x: 5}';
  const order = (value: unknown): string => JSON.stringify(value);
  expect(order(readByUs(text))).toBe(order(readByPyYaml([text])[0]));
});

test('differs from PyYAML only in the documented cases', () => {
  expect(readByUs('value: 2026-01-31')).toEqual({ value: { value: '2026-01-31' } });
  expect(readByUs('value: 12345678901234567890')).toEqual({ value: { value: '12345678901234567890' } });
  expect(readByUs('010: x')).toEqual({ value: { '010': 'x' } });
  expect(readByUs('value: ! 3')).toEqual({ value: { value: '3' } });
  expect(readByUs('value: |\n  text')).toEqual({ value: { value: 'text\n' } });
  expect(readByUs('[<<, =]')).toEqual({ value: ['<<', '='] });
  expect(Object.keys(parseYaml('{<<: [{a: 1}, {b: 2}]}').document?.value ?? {})).toEqual(['a', 'b']);
  expect(parseYaml('a: &a [*a]').problems).toMatchObject([{ path: ['a', 0], found: '*a inside of &a' }]);
});

test('reports repeated keys with all their places, and locates the value that counts', () => {
  const text = 'a: {x: 1, y: 2, x: 33}\nb: 4\nb: 5\nb: 66\n';
  const { document, problems, repeatedKeys } = parseYaml(text);
  expect(problems).toEqual([]);
  const at = (offset: number): string => text.slice(offset, offset + 5);
  expect(
    repeatedKeys.map(({ path, ignored, used }) => [path, ignored.map(({ start }) => at(start)), at(used.start)]),
  ).toEqual([
    [['a', 'x'], ['x: 1,'], 'x: 33'],
    [['b'], ['b: 4\n', 'b: 5\n'], 'b: 66'],
  ]);
  const { place } = document!.locate(['b']);
  expect(text.slice(place.value.start, place.value.end)).toBe('66');
});

test('locates values and keys, also behind aliases and merge keys', () => {
  const text = 'base: &base\n  rate: 2\nproviders:\n  - name: east\n    <<: *base\n';
  const lines = new LineIndex(text);
  const { document } = parseYaml(text);
  const { place, depth } = document!.locate(['providers', 0, 'rate']);
  expect(depth).toBe(3);
  expect(lines.position(place.key.start)).toEqual({ line: 2, column: 3 });
  expect(lines.position(place.value.start)).toEqual({ line: 2, column: 9 });
  expect(document!.locate(['providers', 0, 'region', 'x']).depth).toBe(2);
  const alias = parseYaml('a: &a one\nb: *a\n').document!.locate(['b']);
  expect([alias.place.value, alias.text]).toEqual([
    { start: 13, end: 15 },
    { start: 6, end: 9 },
  ]);
  expect(document!.pathAt(text.indexOf('east'))).toEqual(['providers', 0, 'name']);
  expect(document!.pathAt(text.indexOf('providers'))).toEqual(['providers']);
  expect(document!.pathAt(text.indexOf(': &base'))).toBeUndefined();
});

test.each([
  ['unlimited brackets', '['.repeat(100_000)],
  ['unlimited dashes', '- '.repeat(100_000)],
  ['aliases that multiply', 'a: &a [1]\n' + chain((next, last) => `${next}: &${next} [*${last}, *${last}]`)],
  [
    'merge keys that multiply',
    'a: &a {x: 1}\n' + chain((next, last) => `${next}: &${next} {<<: [*${last}, *${last}]}`),
  ],
])('reports a problem for %s', (_name, text) => {
  const { document, problems } = parseYaml(text);
  expect(document).toBeUndefined();
  expect(problems).not.toEqual([]);
});

function chain(line: (next: string, last: string) => string): string {
  return Array.from({ length: 40 }, (_, index) => line(`n${index}`, index === 0 ? 'a' : `n${index - 1}`)).join('\n');
}

test('a large text is parsed in parts of bounded size, with the same result', async () => {
  const text = Array.from({ length: 2000 }, (_, index) => `- {name: label-${index}, rate: 0.5}\n`).join('');
  let pauses = 0;
  const parsed = await parseYamlInParts(text, () => {
    pauses += 1;
    return Promise.resolve();
  });
  expect(parsed.problems).toEqual([]);
  expect(parsed.document?.value).toEqual(parseYaml(text).document?.value);
  expect(parsed.document?.locate([1999, 'rate'])).toEqual(parseYaml(text).document?.locate([1999, 'rate']));
  // Each entry has more than ten tokens. Three pauses follow the last token.
  expect(pauses).toBeGreaterThanOrEqual(2 + 3);
});

test.each([
  ['two documents', 'a: 1\n---\nb: 2\n', 'an error: Source contains multiple documents'],
  ['a text of brackets only', '['.repeat(100_000), 'too many'],
  [
    'an error at the end',
    'a: [1, 2\n',
    'an error: Flow sequence in block collection must be sufficiently indented and end with a ]',
  ],
])('%s has the same problem in one part and in many', async (_what, text, found) => {
  const parsed = parseYaml(text);
  expect(parsed.problems.map((problem) => problem.found)).toEqual([found]);
  expect(await parseYamlInParts(text, () => Promise.resolve())).toEqual(parsed);
});

test.each(['a: !hunter2!x y', '"hunter2', 'key: ]hunter2', '@hunter2', 'a: "\\hunter2"', 'a: *hunter2x\n hunter2: b'])(
  'a problem does not quote the text: %s',
  (text) => {
    const { problems } = parseYaml(text);
    expect(problems).toHaveLength(1);
    expect(problems[0]?.found).not.toContain('hunter2');
  },
);

test('the levels behind an alias count from the top of the document', () => {
  const levels = (first: string, count: number): string =>
    Array.from(
      { length: count },
      (_, index) => `a${index}: &a${index} [${index === 0 ? first : `*a${index - 1}`}]\n`,
    ).join('');
  const deep = (depth: number): string => `${levels('x', 300)}deep: ${'['.repeat(depth)}*a299${']'.repeat(depth)}\n`;
  expect(parseYaml(deep(50)).problems).toEqual([]);
  const { problems } = parseYaml(deep(150));
  expect(problems).toMatchObject([{ expected: 'at most 400 levels of nesting' }]);
  // The innermost list of the text: a key and 149 lists are above it.
  expect(problems[0]?.path).toHaveLength(150);
});

test.each([
  ['a list', `a: [${'1, '.repeat(300)}1]\nb: 2\n`],
  ['a mapping', `{${'a: 1, '.repeat(300)}a: 1}\n`],
  ['a value before a distant comment', `a: 1${' '.repeat(300)}# comment\nb: [2]\n`],
])('%s with many spaces and colons in one line is not deeply nested', (_what, text) => {
  expect(readByUs(text)).toEqual(readByPyYaml([text])[0]);
});

test('a document has at most 250,000 values, those behind aliases included', () => {
  const numbers = (count: number): string => `[${Array.from({ length: count }, () => 1).join(', ')}]`;
  const repeated = (count: number): string =>
    `- &many ${numbers(999)}\n- [${Array.from({ length: count }, () => '*many').join(', ')}]\n`;
  expect(parseYaml(repeated(248)).problems).toEqual([]);
  expect(parseYaml(repeated(250)).problems).toMatchObject([{ expected: expect.stringContaining('250000 values') }]);
});
