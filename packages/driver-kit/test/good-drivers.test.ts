/** Correct drivers satisfy every rule on every framework. */

import { describe, it } from '@jest/globals';
import { describeDriverContract } from '../src/index.js';
import { acmeSimpleDriver } from './support/acme-simple.js';
import { acmeSubject, subjectOf } from './support/acme-subject.js';
import { supplierSubject } from './support/acme-supplier.js';

describeDriverContract(acmeSubject(), { describe, it });
describeDriverContract(subjectOf('acme, on the simple framework', acmeSimpleDriver), { describe, it });
describeDriverContract(supplierSubject(), { describe, it });
