/** The checkout that the documentation is of. */

import { join } from 'node:path';

/** Its root: this file is two folders below `tooling`, in sources and in what is built of them. */
export const REPOSITORY = join(__dirname, '..', '..', '..');
