/** Defects of the order of launchers and of late reads. */

import { inPackage, type Mutation } from '../mutation.js';

const ORDER = ['precedence.test.ts', 'several-launchers.test.ts'];
const LATE_READS = ['nodes/late-reads.test.ts'];

export const SEVERAL_LAUNCHERS: readonly Mutation[] = [
  ...inPackage('packages/launcher', [
    {
      id: 'order-no-wait',
      file: 'precedence/precedence.ts',
      find: 'if (place <= 0 || first === undefined) return 0;',
      replace: 'if (place < Infinity || first === undefined) return 0;',
      breaks: 'Launchers wait for those before them.',
      tests: ORDER,
    },
    {
      id: 'order-no-help',
      file: 'precedence/precedence.ts',
      find: 'Math.min(idleAt, helpAt)',
      replace: 'Math.min(idleAt, helpAt + 10 * HELP_MS)',
      breaks: 'A busy launcher gets help after some seconds.',
      tests: ORDER,
    },
    {
      id: 'order-trusts-always',
      file: 'precedence/precedence.ts',
      find: 'if (this.distrusted.size === 0) return keys;',
      replace: 'if (this.distrusted.size < Infinity) return keys;',
      breaks: 'A silent launcher delays one request only.',
      tests: ORDER,
    },
    {
      id: 'order-distrusts-for-ever',
      file: 'precedence/precedence.ts',
      find: 'if (this.distrusted.size === 0) return;',
      replace: 'if (this.distrusted.size < Infinity) return;',
      breaks: 'A launcher that works again is waited for again.',
      tests: ORDER,
    },
    {
      id: 'order-all-programs',
      file: 'precedence/launcher-order.ts',
      find: "return component.kind === 'launcher' && component.configuration !== undefined;",
      replace: "return component.kind === 'launcher';",
      breaks: 'Nothing waits for launchers of other implementations.',
      tests: ORDER,
    },
    {
      id: 'order-declined',
      file: 'precedence/launcher-order.ts',
      find: 'pools.filter((pool) => !declinedBy.includes(pool.id))',
      replace: 'pools.filter((pool) => pool.id !== undefined)',
      breaks: 'Nothing waits for a pool that has declined the request.',
      tests: ORDER,
    },
    {
      id: 'order-paused-first',
      file: 'precedence/launcher-order.ts',
      find: 'if (!pools.some((pool) => serves(pool, request))) paused.add(key);',
      replace: '',
      breaks: 'Launchers whose pools are paused come last.',
      tests: ORDER,
    },
    {
      id: 'order-deletion-by-any',
      file: 'precedence/launcher-order.ts',
      find: 'launcher === undefined || !keys.includes(launcher)',
      replace: 'launcher !== undefined || !keys.includes(String(launcher))',
      breaks: 'The launcher of a node deletes it.',
      tests: ORDER,
    },
    {
      id: 'order-stand-by-for-ever',
      file: 'scheduling/stand-bys.ts',
      find: 'pending.timer = this.timers.schedule(this.clock.monotonic() + waitMs, () => this.check(pending));',
      replace: '',
      breaks: 'A request is served when the wait for another launcher ends.',
      tests: ORDER,
    },
  ]),
  ...inPackage('packages/store', [
    {
      id: 'late-unlocked-early',
      file: 'tables/record-table.ts',
      find: 'if (reading === undefined) this.lockChanged(id, false);',
      replace: 'if (reading === undefined || reading !== undefined) this.lockChanged(id, false);',
      breaks: 'A record counts as locked until its change is read.',
      tests: LATE_READS,
    },
    {
      id: 'late-always',
      file: 'nodes/node-store.ts',
      find: 'return node !== undefined && this.otherNodes.has(node) ? OTHERS_DELAY_MS : 0;',
      replace: 'return OTHERS_DELAY_MS;',
      breaks: 'New records and those of this launcher are read at once.',
      tests: LATE_READS,
    },
  ]),
  ...inPackage('packages/zookeeper', [
    {
      id: 'late-lost-read',
      file: 'tree-reads.ts',
      find: 'if (!reads.void && reads.requests > 0) due.push(reads);',
      replace: 'if (!reads.void && reads.requests > 1) due.push(reads);',
      breaks: 'A delayed read is made.',
      tests: ['simulated/delayed-reads.test.ts'],
    },
  ]),
];
