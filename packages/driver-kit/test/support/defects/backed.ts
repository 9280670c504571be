/** Drivers that violate the rules about nodes on backing nodes. */

import type { Defect } from './defect.js';

export const backedDefects: Readonly<Record<string, Defect>> = {
  'backed.slot': { slots: 'slot', says: /the node in this slot of the backing node/ },
  'backed.burst': { slots: 'burst', says: /requests of backing nodes/ },
  'backed.several-launchers': { slots: 'several-launchers', says: /requests of backing nodes/ },
  'backed.taken-over': { slots: 'taken-over', says: /requests of backing nodes/ },
  'backed.failure': { slots: 'failure', says: /the launch of node/ },
  'backed.refusal': { slots: 'refusal', says: /the outcome of the launch/ },
  'backed.packing': { slots: 'packing', says: /the backing node of the next launch/ },
  'backed.release': { slots: 'release', says: /released backing nodes while a slot is in use/ },
  'backed.lost': { slots: 'lost', says: /the node is not listed as failed/ },
  'backed.orphans': { slots: 'orphans', says: /slots in use of the backing node/ },
};
