/** The environment of all tests, which replaces a function of Node.js while jest's own is constructed. */

import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';

const FILE = join(__dirname, '../../jest/environment.cjs');
const PROGRAM = `
  const vm = require('node:vm');
  const { createContext } = vm;
  const Environment = require(${JSON.stringify(FILE)});
  const projectConfig = { testEnvironmentOptions: {}, globals: {} };
  const made = new Environment({ projectConfig, globalConfig: {} }, { testPath: '' });
  console.log(JSON.stringify({
    isOrdinary: made.context === vm.runInContext('globalThis', made.context),
    isRestored: vm.createContext === createContext,
    isIsolated: made.global.Map !== Map,
  }));
`;

it('gives tests an ordinary global object of their own, and restores the function', () => {
  const output = execFileSync(process.execPath, ['-e', PROGRAM], { encoding: 'utf8' });
  expect(JSON.parse(output)).toEqual({ isOrdinary: true, isRestored: true, isIsolated: true });
});
