/** Runs a lint rule of this repository on given sources. */

import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { REPOSITORY } from '../src/repository.js';

const PLUGIN = join(REPOSITORY, 'tooling', 'eslint', 'plugin.mjs');
const OXLINT = join(REPOSITORY, 'node_modules', '.bin', 'oxlint');

export interface Finding {
  readonly line: number;
  readonly column: number;
  readonly message: string;
}

/** The part of oxlint's JSON output that the tests use. */
interface Output {
  readonly diagnostics: readonly {
    readonly filename: string;
    readonly message: string;
    readonly labels: readonly { readonly span: { readonly line: number; readonly column: number } }[];
  }[];
}

/** Returns the findings of a rule in each file, ordered by line. A file is given by its path and its text. */
export function lint(rule: string, files: readonly (readonly [path: string, text: string])[]): Finding[][] {
  const folder = mkdtempSync(join(tmpdir(), 'nodepool-lint-'));
  try {
    const config = { jsPlugins: [PLUGIN], categories: { correctness: 'off' }, rules: { [rule]: 'error' } };
    writeFileSync(join(folder, 'oxlint.json'), JSON.stringify(config));
    for (const [index, [path, text]] of files.entries()) {
      const file = join(folder, String(index), path);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, text);
    }
    const { stdout } = spawnSync(OXLINT, ['-c', 'oxlint.json', '-f', 'json', '.'], { cwd: folder, encoding: 'utf8' });
    const { diagnostics } = JSON.parse(stdout) as Output;
    return files.map(([path], index) =>
      diagnostics
        .filter(({ filename }) => filename === join(String(index), path))
        .flatMap(({ labels, message }) => labels.map(({ span }) => ({ line: span.line, column: span.column, message })))
        .sort((a, b) => a.line - b.line),
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
}
