import { inPackage, type Mutation } from '../mutation.js';

const SIMULATION = ['simulation.test.ts'];

export const GATEWAY: readonly Mutation[] = inPackage('packages/gateway', [
  {
    id: 'gateway-nodes-without-record',
    file: 'leases/lease-controller.ts',
    find: 'alongside: [table.changeOp(entry, change)],',
    replace: 'alongside: [],',
    breaks: 'A lease is ready in the transaction that locks its nodes.',
    tests: SIMULATION,
  },
  {
    id: 'gateway-expiry-of-renewed',
    file: 'leases/lease-controller.ts',
    find: " || (reason === 'expired' && !this.hasExpired(record))",
    replace: '',
    breaks: 'A lease that was renewed meanwhile does not expire.',
    tests: SIMULATION,
  },
  {
    id: 'gateway-quota-race',
    file: 'leases/lease-service.ts',
    find: "return [{ type: 'set', path, data: new Uint8Array(), version: stat?.version ?? 0 }];",
    replace: 'return [];',
    breaks: 'Gateways that create leases at the same time do not exceed the limit of nodes.',
    tests: SIMULATION,
  },
  {
    id: 'gateway-lease-of-others',
    file: 'auth/principal.ts',
    find: 'tenant === null && creator === subject',
    replace: 'tenant === null',
    breaks: 'A token without a tenant sees its own leases only.',
    tests: ['attacks.test.ts'],
  },
  {
    id: 'gateway-token-of-other-audience',
    file: 'auth/issuer-tokens.ts',
    find: 'audience: issuer.audience,',
    replace: '',
    breaks: 'A token for another service is refused.',
    tests: ['attacks.test.ts'],
  },
  {
    id: 'gateway-orphaned-nodes',
    file: 'leases/lease-controller.ts',
    find: 'await this.ending.returnOrphans(id, { signal });',
    replace: '',
    breaks: 'Nodes of a lease without a record are returned.',
    tests: SIMULATION,
  },
]);
