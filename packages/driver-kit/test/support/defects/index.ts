/** A defective driver for each rule of the contract. */

import { backedDefects } from './backed.js';
import { callsDefects } from './calls.js';
import { clientDefects } from './client.js';
import { configurationDefects } from './configuration.js';
import { copiesDefects } from './copies.js';
import type { Defect } from './defect.js';
import { idsDefects } from './ids.js';
import { imagesDefects } from './images.js';
import { lifeDefects } from './life.js';
import { listingsDefects } from './listings.js';
import { outcomesDefects } from './outcomes.js';
import { siteDefects } from './site.js';
import { supplyDefects } from './supply.js';

export const DEFECTS: Readonly<Record<string, Defect>> = {
  ...lifeDefects,
  ...outcomesDefects,
  ...idsDefects,
  ...listingsDefects,
  ...callsDefects,
  ...clientDefects,
  ...imagesDefects,
  ...copiesDefects,
  ...configurationDefects,
  ...siteDefects,
  ...supplyDefects,
  ...backedDefects,
};
