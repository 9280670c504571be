/** The results of replays as a table. */

import type { ReplayResult } from './replay.js';

export interface PolicyResults {
  readonly name: string;
  readonly variants: readonly (ReplayResult & { readonly name: string })[];
}

/** Renders a Markdown table. The last column compares with constant numbers of ready nodes that have the same wait. */
export function renderResults(results: readonly PolicyResults[]): string {
  const constant = results.find(({ name }) => name === 'constant')?.variants ?? [];
  const rows = results.flatMap(({ name, variants }) =>
    variants.map((each) => {
      const ratio = each.idleNodeHours / idleAt(constant, each.meanWaitS);
      return [
        `${name} ${each.name}`,
        `${(each.servedAtOnce * 100).toFixed(1)} %`,
        each.meanWaitS.toFixed(1),
        each.idleNodeHours.toFixed(0),
        String(each.unused),
        name === 'constant' || !Number.isFinite(ratio) ? '' : ratio.toFixed(2),
      ];
    }),
  );
  const head = ['ready nodes', 'served at once', 'mean wait (s)', 'idle node hours', 'unused', 'of constant'];
  const lines = [head, head.map(() => '---'), ...rows];
  return `${lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n')}\n`;
}

/** Returns the idle node hours of constant numbers with this mean wait, interpolated; NaN outside of their range. */
export function idleAt(
  constant: readonly Pick<ReplayResult, 'meanWaitS' | 'idleNodeHours'>[],
  meanWaitS: number,
): number {
  const points = [...constant].sort((a, b) => a.meanWaitS - b.meanWaitS || a.idleNodeHours - b.idleNodeHours);
  for (const [index, to] of points.entries()) {
    const from = points[index - 1];
    if (from === undefined || meanWaitS < from.meanWaitS || meanWaitS > to.meanWaitS) continue;
    const span = to.meanWaitS - from.meanWaitS;
    if (span === 0) return from.idleNodeHours;
    return from.idleNodeHours + ((to.idleNodeHours - from.idleNodeHours) * (meanWaitS - from.meanWaitS)) / span;
  }
  return Number.NaN;
}
