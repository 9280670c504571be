import { inPackage, type Mutation } from '../mutation.js';

export const CREATE_DRIVER: readonly Mutation[] = inPackage('packages/create-driver', [
  {
    id: 'create-driver-word-of-yaml',
    file: 'names.ts',
    find: 'YAML_WORDS.has(driver) || CORE_NAMES.has(driver)',
    replace: 'CORE_NAMES.has(driver)',
    breaks: 'A driver has no name that YAML reads as a boolean.',
    tests: ['names.test.ts'],
  },
  {
    id: 'create-driver-first-name',
    file: 'names.ts',
    find: ".join('|'), 'g')",
    replace: ".join('|'))",
    breaks: 'All names in a template are replaced.',
    tests: ['names.test.ts'],
  },
  {
    id: 'create-driver-longest-name',
    file: 'names.ts',
    find: 'driver.length > MAX_DRIVER_NAME',
    replace: 'driver.length >= MAX_DRIVER_NAME',
    breaks: 'A name may have 60 characters.',
    tests: ['names.test.ts'],
  },
]);
