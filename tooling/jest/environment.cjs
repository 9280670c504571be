'use strict';
// jest's environment for Node.js, with two changes that make tests which compute faster. The global object of the
// context is an ordinary one: that of jest's own environment calls a JavaScript function for each use of a global, such
// as `Map` or `Error`. Errors keep fewer stack frames, because capturing and printing 100 of them takes long.

const vm = require('node:vm');
const { TestEnvironment } = require('jest-environment-node');

const STACK_FRAMES = 20;

module.exports = class FastEnvironment extends TestEnvironment {
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
