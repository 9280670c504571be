/** All API behaviours that the driver relies on. They hold for the real services and for the simulation. */

import type { ApiCase } from './test-bed.js';
import { computeCases } from './compute-cases.js';
import { identityCases } from './identity-cases.js';
import { imageCases } from './image-cases.js';
import { networkCases } from './network-cases.js';
import { serverCases } from './server-cases.js';
import { snapshotCases } from './snapshot-cases.js';
import { volumeCases } from './volume-cases.js';

export const apiCases: readonly ApiCase[] = [
  ...identityCases,
  ...computeCases,
  ...serverCases,
  ...snapshotCases,
  ...imageCases,
  ...networkCases,
  ...volumeCases,
];
