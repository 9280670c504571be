/** The driver contract: every rule of the kit, on a simulated Google Cloud. */

import { describe, it, jest } from '@jest/globals';
import { describeDriverContract } from '@nodepool/driver-kit';
import { simulated } from './contract.js';

jest.setTimeout(60_000);

describeDriverContract(simulated, { describe, it });
