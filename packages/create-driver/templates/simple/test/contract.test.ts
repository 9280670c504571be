/** The contract for all drivers; see the documentation of `@nodepool/driver-kit`. */

import { describe, it } from 'node:test';
import { describeDriverContract } from '@nodepool/driver-kit';
import { fixture } from './test-cloud.js';

describeDriverContract(fixture, { describe, it });
