/** A file of results, so that a long run can be interrupted and continued: one line of JSON per result. */

import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isJsonObject, numberAt, stringAt, type JsonObject } from '@nodepool/core';
import type { Mutation } from './mutation.js';
import { placesOf } from './places.js';
import type { MutationResult } from './run-mutation.js';

export class ResultsFile {
  private constructor(
    private readonly path: string,
    private readonly root: string,
    private readonly results: ReadonlyMap<string, JsonObject>,
  ) {}

  /** Reads the file; a missing one has no results. */
  static read(path: string, root: string): ResultsFile {
    const results = new Map<string, JsonObject>();
    for (const line of existsSync(path) ? readFileSync(path, 'utf8').split('\n') : []) {
      const result: unknown = line === '' ? undefined : JSON.parse(line);
      if (!isJsonObject(result)) continue;
      const id = stringAt(result, 'id');
      if (id !== undefined) results.set(id, result);
    }
    return new ResultsFile(path, root, results);
  }

  /** Returns the latest result; undefined if the defect, its file or one of its test files has changed since. */
  find(mutation: Mutation): MutationResult | undefined {
    const result = this.results.get(mutation.id);
    if (result === undefined || stringAt(result, 'of') !== this.fingerprintOf(mutation)) return undefined;
    return {
      mutation,
      seenBy: stringAt(result, 'seenBy'),
      failedTest: stringAt(result, 'failedTest'),
      stopped: result['stopped'] === true,
      ms: numberAt(result, 'ms') ?? 0,
      output: '',
    };
  }

  async add({ mutation, seenBy, failedTest, stopped, ms }: MutationResult): Promise<void> {
    const of = this.fingerprintOf(mutation);
    const result = { id: mutation.id, of, seenBy, failedTest, stopped, ms: Math.round(ms) };
    await appendFile(this.path, `${JSON.stringify(result)}\n`);
  }

  private fingerprintOf(mutation: Mutation): string {
    const { file, tests } = placesOf(mutation, this.root);
    const texts = [file, ...tests].map((path) => readFileSync(join(this.root, path), 'utf8'));
    const hash = createHash('sha256').update(JSON.stringify([mutation.find, mutation.replace, ...texts]));
    return hash.digest('hex').slice(0, 16);
  }
}
