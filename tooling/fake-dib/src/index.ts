/** Path and modes of the stand-in for `disk-image-create`. */

import { join } from 'node:path';

/** Values of the variable `FAKE_DIB`, which selects the behaviour; see `README.md`. */
export type FakeDibMode =
  | 'works'
  | 'slow'
  | 'fails'
  | 'full'
  | 'hangs'
  | 'chroot'
  | 'stubborn'
  | 'lingers'
  | 'no-file'
  | 'empty'
  | 'partial'
  | 'no-checksum'
  | 'wrong-checksum';

/** Path of the program, for `dib-cmd`. */
export const FAKE_DIB_COMMAND = join(__dirname, '..', 'disk-image-create');
