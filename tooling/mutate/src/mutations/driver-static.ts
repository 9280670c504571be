import { inPackage, type Mutation } from '../mutation.js';

export const DRIVER_STATIC: readonly Mutation[] = inPackage('packages/driver-static', [
  {
    id: 'static-one-host-key',
    file: 'provider.ts',
    find: 'const missing = hostKeys.find((key) => !found.includes(bareKey(key)));',
    replace: 'const missing = hostKeys.some((key) => found.includes(bareKey(key))) ? undefined : hostKeys[0];',
    breaks: 'A machine must have all configured host keys.',
    tests: ['provider.test.ts'],
  },
  {
    id: 'static-comment-of-key',
    file: 'provider.ts',
    find: '!found.includes(bareKey(key))',
    replace: '!found.includes(key)',
    breaks: 'A configured host key may have a comment.',
    tests: ['provider.test.ts'],
  },
  {
    id: 'static-timeout',
    file: 'provider.ts',
    find: 'Math.min(call.deadline, clock.monotonic() + machine.timeoutMs)',
    replace: 'call.deadline',
    breaks: 'The check of a machine ends at its timeout.',
    tests: ['provider.test.ts'],
  },
  {
    id: 'static-identity',
    file: 'config.ts',
    find: 'JSON.stringify([name, username, port])',
    replace: 'JSON.stringify([name, port])',
    breaks: 'A machine may serve several users.',
    tests: ['provider.test.ts', 'contract.test.ts'],
  },
  {
    id: 'static-port-of-winrm',
    file: 'config.ts',
    find: "(type === 'winrm' ? WINRM_PORT : SSH_PORT)",
    replace: 'SSH_PORT',
    breaks: 'The default port of winrm is 5986.',
    tests: ['provider.test.ts', 'contract.test.ts'],
  },
]);
