// The parts of prom-client that the daemons use. Its own entry also loads the metrics of Node.js, the push gateway with
// the HTTP client, clusters and OpenTelemetry, which take almost all of its time and memory.

exports.Registry = require('prom-client/lib/registry');
exports.Counter = require('prom-client/lib/counter');
exports.Gauge = require('prom-client/lib/gauge');
