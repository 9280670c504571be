/** Every behaviour of the APIs that the driver relies on: true of the real services, and so of the simulation. */

import type { ApiCase } from './bench.js';
import { computeCases } from './compute-cases.js';
import { identityCases } from './identity-cases.js';
import { imageCases } from './image-cases.js';
import { networkCases } from './network-cases.js';
import { serverCases } from './server-cases.js';
import { volumeCases } from './volume-cases.js';

export const apiCases: readonly ApiCase[] = [
  ...identityCases,
  ...computeCases,
  ...serverCases,
  ...imageCases,
  ...networkCases,
  ...volumeCases,
];
