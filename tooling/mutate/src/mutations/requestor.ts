import { inPackage, type Mutation } from '../mutation.js';

const TESTS = ['life.test.ts', 'faults.test.ts'];

export const REQUESTOR: readonly Mutation[] = inPackage('packages/requestor', [
  {
    id: 'requestor-request-of-same-id',
    file: 'node-request.ts',
    find: 'return stat?.ephemeralOwner === this.owner;',
    replace: 'return true;',
    breaks: 'A request of another program with the same id is not removed.',
    tests: TESTS,
  },
  {
    id: 'requestor-node-of-other-request',
    file: 'node-request.ts',
    find: "state === 'ready' && allocatedTo === this.id",
    replace: "state === 'ready'",
    breaks: 'A node that belongs to another request is not taken.',
    tests: TESTS,
  },
  {
    id: 'requestor-left-locks',
    file: 'node-request.ts',
    find: 'void lock.release();\n      signal.throwIfAborted();',
    replace: 'void lock;\n      signal.throwIfAborted();',
    breaks: 'A failed attempt leaves no lock.',
    tests: TESTS,
  },
  {
    id: 'requestor-accepted-request',
    file: 'node-request.ts',
    find: "if (value.state !== 'requested') return false;",
    replace: '',
    breaks: 'An accepted request is not revised.',
    tests: TESTS,
  },
  {
    id: 'requestor-own-removal',
    file: 'node-request.ts',
    find: 'if (unknown) return true;',
    replace: '',
    breaks: 'A removal whose answer was lost is the own one.',
    tests: TESTS,
  },
  {
    id: 'requestor-failed-take',
    file: 'node-request.ts',
    find: 'await lease.return();',
    replace: '',
    breaks: 'Nodes that could not be marked in-use are returned.',
    tests: TESTS,
  },
  {
    id: 'requestor-unused-node',
    file: 'lease.ts',
    find: "handle.node.state === 'in-use' ? used : undefined",
    replace: 'used',
    breaks: 'A returned node that was not used serves other requests.',
    tests: TESTS,
  },
  {
    id: 'requestor-lost-after-return',
    file: 'lease.ts',
    find: 'if (this.ending === undefined) this.lostController',
    replace: 'this.lostController',
    breaks: 'A returned lease is not lost.',
    tests: TESTS,
  },
  {
    id: 'requestor-shared-adoption',
    file: 'durable-lock.ts',
    find: 'adopt(id, owner, { takeOver, watchContender: true, signal })',
    replace: 'adopt(id, owner, { takeOver: false, watchContender: true, signal })',
    breaks: 'A process that adopts a durable lease takes it over.',
    tests: ['durable.test.ts'],
  },
]);
