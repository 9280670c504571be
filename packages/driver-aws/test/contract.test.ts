/** The driver contract: every rule of the kit, on a simulated AWS. */

import { describe, it } from '@jest/globals';
import { describeDriverContract } from '@nodepool/driver-kit';
import { simulated } from './contract.js';

describeDriverContract(simulated, { describe, it });
