/** Commands of the configuration as words. */

import { expect, it } from '@jest/globals';
import { splitWords } from '@nodepool/config';

it.each([
  ['a b  c', ['a', 'b', 'c']],
  [`'a b' "c \\"d\\"" e\\ f`, ['a b', 'c "d"', 'e f']],
  [`--x="y z"w ''`, ['--x=y zw', '']],
  ['', []],
])('splits %j as a shell does', (text, words) => {
  expect(splitWords(text)).toEqual(words);
});
