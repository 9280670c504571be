/** The driver contract: every rule of the kit, on a cloud in this process and on one over HTTP. */

import { describe, it } from '@jest/globals';
import { describeDriverContract } from '@nodepool/driver-kit';
import { inProcess, overHttp } from './contract.js';

describeDriverContract(inProcess, { describe, it });
describeDriverContract(overHttp, { describe, it });
