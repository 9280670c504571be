/** Parses a configuration file. Positions in problems are those of the file on disk, before variables are filled in. */

import { parseYamlInParts, type RepeatedKey } from '@nodepool/pyyaml';
import { nextTurn } from '@nodepool/core';
import { ConfigDocument } from './document.js';
import { formatPath, type ConfigProblem } from './problems.js';
import type { SourceText } from './source.js';

export interface ParseResult {
  /** Also set if the problems concern only parts of the file, e.g. an unset variable. */
  readonly document: ConfigDocument | undefined;
  readonly problems: readonly ConfigProblem[];
  /** Repeated keys; the last one counts. */
  readonly warnings: readonly ConfigProblem[];
  /** Variables without a value, with the places where the file needs them. */
  readonly missingVariables: readonly ConfigProblem[];
}

export async function parseYaml(source: SourceText): Promise<ParseResult> {
  const { document, problems, repeatedKeys } = await parseYamlInParts(source.text, nextTurn);
  const found = problems.map(({ span, path, ...text }): ConfigProblem => ({
    ...source.position(span.start),
    path: formatPath(path),
    ...text,
  }));
  const missingVariables: ConfigProblem[] = [];
  for (const { variable, start } of source.missingVariables()) {
    const path = document?.pathAt(start);
    // A placeholder in a comment needs no value.
    if (path === undefined) continue;
    missingVariables.push({
      ...source.position(start),
      path: formatPath(path),
      expected: `the environment variable ${variable} to be set`,
      found: undefined,
      hint: `set the variable for this process, or remove %(${variable}) from the file`,
    });
  }
  return {
    document: document && new ConfigDocument(document, source),
    problems: found,
    warnings: repeatedKeys.map((repeated) => repeatedKey(source, repeated)),
    missingVariables,
  };
}

function repeatedKey(source: SourceText, { path, ignored, used }: RepeatedKey): ConfigProblem {
  const lines = ignored.map(({ start }) => source.position(start).line);
  return {
    ...source.position(used.start),
    path: formatPath(path),
    expected: 'each key once in a mapping',
    found: `it also on line ${lines.join(' and ')}, whose value is ignored`,
    hint: 'remove all but one: the last one counts',
  };
}
