/** A text that is parsed in many small parts has the same value, places and problems as one that is parsed at once. */

import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { parseYaml, parseYamlInParts, type ParsedYaml, type YamlPath, type YamlValue } from '../src/index.js';

const pause = (): Promise<void> => Promise.resolve();

function pathsOf(value: YamlValue | undefined, path: YamlPath = []): YamlPath[] {
  if (typeof value !== 'object' || value === null) return [path];
  return [
    path,
    ...Object.entries(value).flatMap(([key, each]) =>
      pathsOf(each, [...path, Array.isArray(value) ? Number(key) : key]),
    ),
  ];
}

/** Returns everything that users of the package can see. */
function factsOf(text: string, { document, problems }: ParsedYaml): unknown {
  const value = document?.value;
  const places = pathsOf(value).map((path) => document?.locate(path));
  const paths = Array.from(text, (_, offset) => document?.pathAt(offset));
  return { value, places, paths, problems };
}

const scalar = fc.constantFrom('a', 'b c', '1', '"q: {"', "'s ]'", '~', 'true', '"two\\\n  lines"', '');
const key = fc.constantFrom('k', 'name', '"quoted"', '1', 'long key');
const { flow } = fc.letrec<{ flow: string; list: string; map: string }>((tie) => ({
  flow: fc.oneof(
    { maxDepth: 3 },
    scalar.filter((text) => text !== ''),
    tie('list'),
    tie('map'),
  ),
  list: fc.array(tie('flow'), { maxLength: 4 }).map((items) => `[${items.join(', ')}${items.length > 2 ? ' ,' : ''}]`),
  map: fc.array(fc.tuple(key, tie('flow')), { maxLength: 4 }).map((items) => {
    return `{ ${items.map(([name, value], index) => `"${index}${name.replaceAll('"', '')}": ${value}`).join(', ')} }`;
  }),
}));

/** Lines of a block, without indentation. */
const { block } = fc.letrec<{ block: string[]; list: string[]; map: string[] }>((tie) => ({
  block: fc.oneof(
    { maxDepth: 4 },
    flow.map((text) => [text]),
    tie('list'),
    tie('map'),
  ),
  list: fc
    .array(fc.tuple(fc.constantFrom('', '', '# note', '&x'), tie('block')), { minLength: 1, maxLength: 5 })
    .map((items) =>
      items.flatMap(([props, [first = '', ...rest]]) => {
        if (props === '# note') return ['# note', `- ${first}`, ...rest.map((line) => `  ${line}`)];
        if (props === '&x') return ['- &x', ...[first, ...rest].map((line) => `  ${line}`)];
        return [`- ${first}`, ...rest.map((line) => `  ${line}`)];
      }),
    ),
  map: fc
    .array(fc.tuple(key, fc.constantFrom('', '', ' # end', ' !!map'), tie('block')), { minLength: 1, maxLength: 5 })
    .map((items) =>
      items.flatMap(([name, props, lines], index) => [
        `${name.replaceAll('"', '')}${index}:${props}`,
        ...lines.map((line) => `  ${line}`),
        ...(index % 3 === 2 ? ['', '# between'] : []),
      ]),
    ),
}));

it('a text in many parts means the same as a text in one', async () => {
  await fc.assert(
    fc.asyncProperty(block, fc.nat(60), fc.boolean(), async (lines, partLength, hasAlias) => {
      const text = `${lines.join('\n')}\n${hasAlias && lines[0]?.includes(':') ? 'alias: *x\n' : ''}`;
      const inParts = await parseYamlInParts(text, pause, partLength);
      expect(factsOf(text, inParts)).toEqual(factsOf(text, parseYaml(text)));
    }),
    { seed: 11, numRuns: 40 },
  );
});
