/** A file of results, so that a long run can be made in parts: one line of JSON per defect that tests have seen. */

import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { appendFile, readFile } from 'node:fs/promises';
import { isJsonObject, stringAt } from '@nodepool/core';
import type { Mutation } from './mutation.js';
import type { MutationResult } from './run-mutation.js';

export class ResultsFile {
  private constructor(
    private readonly file: string,
    private readonly seenBy: ReadonlyMap<string, string>,
  ) {}

  /** Reads the file; a missing one has no results. */
  static async read(file: string): Promise<ResultsFile> {
    const seenBy = new Map<string, string>();
    for (const line of existsSync(file) ? (await readFile(file, 'utf8')).split('\n') : []) {
      const result: unknown = line === '' ? undefined : JSON.parse(line);
      const [key, by] = isJsonObject(result) ? [stringAt(result, 'defect'), stringAt(result, 'seenBy')] : [];
      if (key !== undefined && by !== undefined) seenBy.set(key, by);
    }
    return new ResultsFile(file, seenBy);
  }

  /** Returns the result of an earlier run; undefined if no test saw the defect, or if the defect has changed since. */
  find(mutation: Mutation): MutationResult | undefined {
    const seenBy = this.seenBy.get(keyOf(mutation));
    return seenBy === undefined ? undefined : { mutation, seenBy, stopped: false, output: '' };
  }

  async add({ mutation, seenBy }: MutationResult): Promise<void> {
    if (seenBy !== undefined) await appendFile(this.file, `${JSON.stringify({ defect: keyOf(mutation), seenBy })}\n`);
  }
}

function keyOf({ id, file, find, replace }: Mutation): string {
  const hash = createHash('sha256')
    .update(JSON.stringify([file, find, replace]))
    .digest('hex');
  return `${id} ${hash.slice(0, 16)}`;
}
