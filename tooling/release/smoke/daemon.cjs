// Logs a line, and counts for Prometheus.
'use strict';

const assert = require('node:assert');
const { PassThrough } = require('node:stream');
const { openPrometheus, setUpLogging } = require('@nodepool/daemon');

async function main() {
  const stderr = new PassThrough();
  const log = await setUpLogging({ file: undefined, debug: false, stderr });
  log.info('Started', { pools: 2 });
  await log.close();
  assert.match(stderr.read().toString(), /INFO.*Started.*pools.*2/);

  const series = openPrometheus(assert.fail);
  series.increment({ name: 'nodepool_smoke_total', help: 'Counts.', labels: [] }, {}, 3);
  assert.match(await series.text(), /^nodepool_smoke_total 3$/m);
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
