// The parts of undici that the drivers use. Its own entry also loads fetch, WebSocket, mocks and caches, which take more
// than half of its time and memory.

const Dispatcher = require('undici/lib/dispatcher/dispatcher.js');

Object.assign(Dispatcher.prototype, require('undici/lib/api'));

exports.Agent = require('undici/lib/dispatcher/agent.js');
exports.EnvHttpProxyAgent = require('undici/lib/dispatcher/env-http-proxy-agent.js');
