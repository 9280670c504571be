/** Where the stand-in for `disk-image-create` is, and what it can be told to do. */

import { join } from 'node:path';

/** What the stand-in does when the variable `FAKE_DIB` says so; `README.md` describes each. */
export type FakeDibMode =
  | 'works'
  | 'slow'
  | 'fails'
  | 'full'
  | 'hangs'
  | 'stubborn'
  | 'lingers'
  | 'no-file'
  | 'empty'
  | 'partial'
  | 'no-checksum'
  | 'wrong-checksum';

/** Path of the program, for `dib-cmd`. */
export const FAKE_DIB_COMMAND = join(__dirname, '..', 'disk-image-create');
