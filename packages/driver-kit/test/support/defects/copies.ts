/** Drivers that violate the rules about copies. */

import { unmarkedCopies } from '../changed-drivers.js';
import type { Defect } from './defect.js';

export const copiesDefects: Readonly<Record<string, Defect>> = {
  'copy.instance': { changes: unmarkedCopies(), says: /listed instances that have the tags of this provider/ },
  'copy.image': { changes: unmarkedCopies(), says: /listed images/ },
};
