/** A driver that violates a rule, and the message that the kit must print. */

import type { Server } from 'node:net';
import type { JsonObject } from '@nodepool/core';
import type { Changes } from '../acme-driver.js';
import type { SlotsDefect } from '../acme-slots.js';
import type { SupplierChanges } from '../acme-supplier.js';

export interface Defect {
  readonly changes?: Changes;
  /** A defective package.json. */
  readonly manifest?: JsonObject;
  /** For a rule about drivers that declare machines: the defects of such a driver. */
  readonly supplier?: SupplierChanges;
  /** For a rule about nodes on backing nodes: the defect of such a driver. */
  readonly slots?: SlotsDefect;
  /** Part of the message. */
  readonly says: RegExp;
}

/** Servers that a defect left open, for the test to close. */
export const leftOpen: Server[] = [];
