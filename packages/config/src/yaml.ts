/** Parses a configuration file. Positions in problems are those of the file on disk, before variables are filled in. */

import { parseYamlInParts } from '@nodepool/pyyaml';
import { nextTurn } from '@nodepool/core';
import { ConfigDocument } from './document.js';
import { formatPath, type ConfigProblem } from './problems.js';
import type { SourceText } from './source.js';

export interface ParseResult {
  /** Also set if the problems concern only parts of the file, e.g. an unset variable. */
  readonly document: ConfigDocument | undefined;
  readonly problems: readonly ConfigProblem[];
}

export async function parseYaml(source: SourceText): Promise<ParseResult> {
  const { document, problems } = await parseYamlInParts(source.text, nextTurn);
  const found = problems.map(({ span, path, ...text }): ConfigProblem => ({
    ...source.position(span.start),
    path: formatPath(path),
    ...text,
  }));
  for (const { variable, start } of source.missingVariables()) {
    const path = document?.pathAt(start);
    // A placeholder in a comment needs no value.
    if (path === undefined) continue;
    found.push({
      ...source.position(start),
      path: formatPath(path),
      expected: `the environment variable ${variable}`,
      found: 'that it is not set',
      hint: `set the variable for this process, or remove %(${variable}) from the file`,
    });
  }
  return { document: document && new ConfigDocument(document, source), problems: found };
}
