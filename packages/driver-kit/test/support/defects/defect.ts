/** A driver that breaks a rule, and the message of the kit. */

import type { Server } from 'node:net';
import type { JsonObject } from '@nodepool/core';
import type { Changes } from '../acme-driver.js';
import type { SupplierChanges } from '../acme-supplier.js';

export interface Defect {
  readonly changes?: Changes;
  /** A wrong package.json. */
  readonly manifest?: JsonObject;
  /** A driver that declares machines, if the rule is for such drivers. */
  readonly supplier?: SupplierChanges;
  /** Part of the message. */
  readonly says: RegExp;
}

/** Servers that a defect left open, for the test to close. */
export const leftOpen: Server[] = [];
