import { inPackage, type Mutation } from '../mutation.js';

export const DRIVER_EXAMPLE: readonly Mutation[] = inPackage('packages/driver-example', [
  {
    id: 'example-first-page',
    file: 'client/pages.ts',
    find: 'while (page.next !== null) {',
    replace: 'while (false) {',
    breaks: 'A list has all pages.',
    tests: ['clients.test.ts', 'contract.test.ts'],
  },
  {
    id: 'example-404-of-proxy',
    file: 'errors.ts',
    find: "{ status: /^40[13]$/, error: 'auth'",
    replace: "{ status: 404, text: /./, error: 'not-found' },\n    { status: /^40[13]$/, error: 'auth'",
    breaks: 'A 404 that the cloud did not create does not prove a deletion.',
    tests: ['clients.test.ts', 'contract.test.ts'],
  },
  {
    id: 'example-internal-error-without-effect',
    file: 'errors.ts',
    find: "{ code: /^(internal|answer-lost)$/, error: 'transient' }",
    replace: "{ code: /^(internal|answer-lost)$/, error: 'transient', outcome: 'not-applied' }",
    breaks: 'An internal error leaves the outcome of a call unknown.',
    tests: ['launch.test.ts', 'contract.test.ts'],
  },
  {
    id: 'example-resumed-creation',
    file: 'create-machine.ts',
    find: "else if (options.saved !== null) this.state = 'looking';",
    replace: '',
    breaks: 'A resumed launch creates no second instance.',
    tests: ['launch.test.ts', 'contract.test.ts'],
  },
  {
    id: 'example-accepted-deletion',
    file: 'delete-machine.ts',
    find: "if (this.deletion.take().state === 'deleted') return",
    replace: "if (this.deletion.take().state !== '') return",
    breaks: 'An accepted deletion does not prove that the instance is deleted.',
    tests: ['launch.test.ts', 'provider-life.test.ts', 'contract.test.ts'],
  },
]);
