/** Recorded messages of a real server, the input of fuzzing. */

import { readFileSync } from 'node:fs';

/** Messages without their length, by call: the names of `OPERATIONS`, and `connect`, `event`, `ping`, `setWatches`. */
export type Corpus = Readonly<Record<string, readonly Buffer[]>>;

/** Reads `fuzz/corpus.json`, lists of hexadecimal texts. Throws if the file is malformed. */
export function loadCorpus(file: string): Corpus {
  const parsed: unknown = JSON.parse(readFileSync(file, 'utf8'));
  if (typeof parsed !== 'object' || parsed === null) throw new Error(`${file}: an object was expected`);
  return Object.fromEntries(
    Object.entries(parsed).map(([name, messages]: [string, unknown]) => {
      if (!Array.isArray(messages)) throw new Error(`${file}: ${name} is not a list`);
      return [name, messages.map((message: unknown) => Buffer.from(String(message), 'hex'))];
    }),
  );
}

export function corpusText(corpus: Corpus): string {
  const texts = Object.fromEntries(
    Object.entries(corpus).map(([name, messages]) => [name, messages.map((message) => message.toString('hex'))]),
  );
  return `${JSON.stringify(texts, undefined, 2)}\n`;
}
