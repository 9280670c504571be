/** Deliberate defects of the number of ready nodes. */

import { inPackage, type Mutation } from '../mutation.js';

export const LAUNCHER_READY: readonly Mutation[] = [
  ...inPackage('packages/launcher', [
    {
      id: 'launcher-target-is-not-held',
      file: 'supply/ready-node-removal.ts',
      find: 'private readonly held = (label: string): number => this.targets.heldOf(label);',
      replace: 'private readonly held = (label: string): number => this.targets.of(label).count;',
      breaks: 'Nodes are surplus only once the number of ready nodes was lower for max-idle-time.',
      tests: ['ready/ready.test.ts'],
    },
    {
      id: 'launcher-held-target-ends-late',
      file: 'supply/held-target.ts',
      find: 'since = steps.pop()?.since ?? since;',
      replace: 'steps.pop();',
      breaks: 'A larger target is held from its own end, not from that of a smaller one after it.',
      tests: ['ready/demand-model.test.ts'],
    },
    {
      id: 'launcher-use-is-not-followed',
      file: 'supply/ready-targets.ts',
      find: 'if (this.held.has(label)) this.queue.add(label);',
      replace: '',
      breaks: 'The number of ready nodes follows the nodes in use.',
      tests: ['ready/ready.test.ts'],
    },
    {
      id: 'launcher-misses-take-nodes',
      file: 'supply/forecast/demand-counter.ts',
      find: 'if (replacements.length >= size) continue;',
      replace: '',
      breaks: 'A request that finds no ready node takes none from the pool.',
      tests: ['ready/demand-model.test.ts'],
    },
    {
      id: 'launcher-forgets-demand',
      file: 'supply/forecast/demand-forecasts.ts',
      find: 'await Promise.all(Array.from(this.terms, ([label, term]) => this.saveLast(label, term)));',
      replace: 'await Promise.resolve();',
      breaks: 'A launcher that stops saves the demand of the present quarter of an hour.',
      tests: ['ready/ready.test.ts'],
    },
    {
      id: 'launcher-counts-requests-twice',
      file: 'supply/forecast/label-demand.ts',
      find: 'if (!isLater(sequence, this.lastRequest)) return;',
      replace: '',
      breaks: 'A request that an earlier launcher has counted is not counted again.',
      tests: ['ready/ready.test.ts'],
    },
  ]),
  ...inPackage('packages/config', [
    {
      id: 'config-ready-above-max',
      file: 'ready/target.ts',
      find: 'if (target.count <= max.value) return target;',
      replace: 'if (target.count >= 0) return target;',
      breaks: 'A label has at most `max` ready nodes.',
      tests: ['ready.test.ts'],
    },
    {
      id: 'config-forecast-without-lead',
      file: 'ready/target.ts',
      find: 'const last = Math.floor((now + leadMs - from) / QUARTER_MS);',
      replace: 'const last = first;',
      breaks: 'Nodes for a quarter of an hour are launched one boot time before it.',
      tests: ['ready.test.ts'],
    },
  ]),
  ...inPackage('packages/store', [
    {
      id: 'store-demand-look-alikes',
      file: 'demand/demand-store.ts',
      find: 'const old = names.filter((name) => DAY_NAME.test(name) && Number(name) < first)',
      replace: 'const old = names.filter((name) => Number.parseInt(name, 10) < first)',
      breaks: 'Only records of old days are deleted.',
      tests: ['demand.test.ts'],
    },
  ]),
];
