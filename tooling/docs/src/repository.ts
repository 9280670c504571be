/** The checkout that contains the documentation. */

import { join } from 'node:path';

/** Root of the checkout. This file is two folders below `tooling`, both in the sources and in the built files. */
export const REPOSITORY = join(__dirname, '..', '..', '..');
