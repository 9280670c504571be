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
    id: 'create-driver-order-of-names',
    file: 'names.ts',
    find: "['package', 'pascal', 'camel', 'driver']",
    replace: "['driver', 'pascal', 'camel', 'package']",
    breaks: 'The name of the package is replaced as a whole.',
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
