/** The remedies of an operator for each kind of failure; every view has the same words. */

import type { DriverErrorCode } from './error-codes.js';

const NETWORK = 'check the network, the firewall and the status of the cloud; launches resume by themselves';

const REMEDIES: Readonly<Partial<Record<DriverErrorCode, string>>> = {
  auth:
    'renew the credentials on every launcher and builder, or give their account the permission; ' +
    'the page of the driver names both',
  certificate:
    'renew the certificate of the cloud, or configure the authority that has signed it; check the clocks of the hosts',
  configuration: 'correct the configuration of the provider, or create what it names in the cloud',
  'not-found': 'correct the name in the configuration, or create the object in the cloud',
  transient: NETWORK,
  timeout: NETWORK,
  throttled: 'check the status of the cloud; if it limits calls, set a slower `rate`: others may use the same account',
  quota: 'raise the quota in the cloud, or delete what else uses it; requests wait until nodes are returned',
  capacity: 'wait until the cloud has capacity, or configure another zone or size',
  refused: 'repair what the answer of the cloud names; the launcher tries again by itself',
};

/** Returns the remedy as a clause without a period. */
export function remedyFor(code: DriverErrorCode): string {
  return REMEDIES[code] ?? 'repair what the message names; the log of the launcher has the details';
}
