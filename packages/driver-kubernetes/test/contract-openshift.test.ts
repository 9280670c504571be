/** The driver contract: every rule of the kit, for the driver openshift on a simulated cluster. */

import { describe, it } from '@jest/globals';
import { describeDriverContract } from '@nodepool/driver-kit';
import { simulated } from './contract.js';

describeDriverContract(simulated('openshift'), { describe, it });
