'use strict';
// jest's environment for Node.js, with two changes for tests that compute. In jest's own environment each use of a
// global, such as `Map` or `Error`, calls JavaScript functions; here the global object is an ordinary one. Errors have
// fewer stack frames, because capturing 100 of them takes long.

const vm = require('node:vm');
const { TestEnvironment } = require('jest-environment-node');

const STACK_FRAMES = 20;

module.exports = class OrdinaryGlobalEnvironment extends TestEnvironment {
  constructor(config, context) {
    const { createContext } = vm;
    vm.createContext = () => createContext(vm.constants.DONT_CONTEXTIFY);
    try {
      super(config, context);
    } finally {
      vm.createContext = createContext;
    }
    this.global.Error.stackTraceLimit = STACK_FRAMES;
  }
};
