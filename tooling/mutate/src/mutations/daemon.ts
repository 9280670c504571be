import { inPackage, type Mutation } from '../mutation.js';

export const DAEMON: readonly Mutation[] = inPackage('packages/daemon', [
  {
    id: 'daemon-size-of-datagram',
    file: 'metrics/statsd.ts',
    find: '> BATCH.bytes) this.flush();',
    replace: '> 60_000) this.flush();',
    breaks: 'A datagram has at most 1400 bytes.',
    tests: ['metrics.test.ts'],
  },
  {
    id: 'daemon-last-metrics',
    file: 'metrics/statsd.ts',
    find: 'this.flush();\n    await this.sent;',
    replace: 'await this.sent;',
    breaks: 'Pending metrics are sent at the end.',
    tests: ['metrics.test.ts'],
  },
  {
    id: 'daemon-removed-gauge',
    file: 'metrics/prometheus.ts',
    find: 'else if (series.forget(labels)) series.of',
    replace: 'else series.of',
    breaks: 'A removed series makes room for another one.',
    tests: ['metrics.test.ts'],
  },
  {
    id: 'daemon-number-of-log-files',
    file: 'logging/log-file.ts',
    find: 'for (let index = keep - 1;',
    replace: 'for (let index = keep;',
    breaks: 'The configured number of log files remains.',
    tests: ['logging.test.ts'],
  },
  {
    id: 'daemon-pid-of-other-process',
    file: 'process/pid-file.ts',
    find: 'if (readPid(file) !== process.pid) return;',
    replace: '',
    breaks: 'The pid file of another process is not deleted.',
    tests: ['pid-file.test.ts'],
  },
]);
