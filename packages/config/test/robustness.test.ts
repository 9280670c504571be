/** Loading any file gives a configuration or problems, and never fails. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { seededRandom } from '@nodepool/core/testing';
import type { LoadResult } from '@nodepool/config';
import { loadText } from './files.js';

const FILES = ['opendev/builder.yaml', 'valid/azure.yaml', 'valid/secure_main.yaml'];
const SEEDS = [1, 2, 3, 4, 5];
const FRAGMENTS = [
  ...Array.from('{}[]:,-?*&!|>\'"%@`#\n\t '),
  '\0',
  '\u{1F4A5}',
  '<<: ',
  '*x',
  '&x ',
  '!!set ',
  '%(NODEPOOL_X)',
  '---\n',
  '__proto__: ',
];

function text(file: string): string {
  return readFileSync(join(__dirname, 'files', file), 'utf8');
}

function expectAnswer(result: LoadResult, content: string): void {
  if (result.ok) return;
  const lines = content.split('\n').length;
  expect(result.problems).not.toEqual([]);
  for (const problem of result.problems) {
    expect(problem.line).toBeGreaterThan(0);
    expect(problem.line).toBeLessThanOrEqual(lines);
    expect(problem.column).toBeGreaterThan(0);
  }
}

describe('a file', () => {
  it.each(FILES)('that is truncated gives a result or problems (%s)', async (file) => {
    const whole = text(file);
    for (let length = 0; length < whole.length; length += Math.ceil(whole.length / 40)) {
      const part = whole.slice(0, length);
      expectAnswer(await loadText(part), part);
    }
  });

  it.each(FILES.flatMap((file) => SEEDS.map((seed) => [file, seed] as const)))(
    'with random damage gives a result or problems (%s, seed %d)',
    async (file, seed) => {
      const random = seededRandom(seed);
      for (let round = 0; round < 10; round++) {
        let damaged = text(file);
        for (let hit = 0; hit < 3; hit++) {
          const at = Math.floor(random.next() * damaged.length);
          const fragment = FRAGMENTS[Math.floor(random.next() * FRAGMENTS.length)] ?? '';
          damaged = damaged.slice(0, at) + fragment + damaged.slice(at + (random.next() < 0.5 ? 0 : 5));
        }
        expectAnswer(await loadText(damaged), damaged);
      }
    },
  );
});
