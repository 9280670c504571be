/** A stacked chart of nodes by state over time. */

import { h, svg, type Child } from './dom.js';
import type { NodeGroup, NodeHistoryStatus, NodesStatus } from './status.js';
import { ageText, clockText, counted, numberText } from './text.js';
import { groupClass, nothing, type Present } from './widgets.js';

const WIDTH = 1000;
const HEIGHT = 200;

/** Returns the current numbers of nodes, as a legend, and the chart of past and current numbers. */
export function nodesChart(nodes: NodesStatus, { groups, samples }: NodeHistoryStatus, present: Present): Child[] {
  const now = { time: present.now(), counts: groups.map((group) => nodes.groups[group]) };
  const points = [...samples, now];
  const first = points[0]?.time ?? now.time;
  return [
    legend(groups, nodes),
    samples.length === 0
      ? nothing('The chart begins ten seconds after the start of the launcher.')
      : h(
          'div',
          { class: 'chart' },
          h('span', { class: 'chart-top' }, numberText(ceiling(points.map(({ counts }) => sum(counts))))),
          drawing(groups, points),
          h(
            'div',
            { class: 'chart-times' },
            h('span', {}, `${clockText(first)}, ${ageText(now.time - first)} ago`),
            h('span', {}, 'now'),
          ),
        ),
  ];
}

function legend(groups: readonly NodeGroup[], nodes: NodesStatus): HTMLElement {
  const items = groups.map((group) =>
    h('li', { class: groupClass(group) }, h('b', {}, numberText(nodes.groups[group])), ` ${group}`),
  );
  return h('ul', { class: 'legend', 'aria-label': 'Nodes now' }, ...items);
}

function drawing(groups: readonly NodeGroup[], points: NodeHistoryStatus['samples']): SVGElement {
  const top = ceiling(points.map(({ counts }) => sum(counts)));
  const begin = points[0]?.time ?? 0;
  const span = Math.max((points.at(-1)?.time ?? 0) - begin, 1);
  const x = (time: number): number => round(((time - begin) / span) * WIDTH);
  const y = (count: number): number => round(HEIGHT - (count / top) * HEIGHT);
  const areas = groups.map((group, index) => {
    const upper = points.map(({ time, counts }) => `${x(time)},${y(sum(counts.slice(0, index + 1)))}`);
    const lower = points.map(({ time, counts }) => `${x(time)},${y(sum(counts.slice(0, index)))}`);
    return svg('polygon', { class: groupClass(group), points: [...upper, ...lower.reverse()].join(' ') });
  });
  const lines = [0, 0.5].map((share) =>
    svg('line', { class: 'grid', x1: 0, x2: WIDTH, y1: HEIGHT * share, y2: HEIGHT * share }),
  );
  const totals = points.map(({ counts }) => sum(counts));
  const words = `Number of nodes over the last ${ageText(span)}: from ${numberText(Math.min(...totals))} to ${counted(Math.max(...totals), 'node')}, now ${numberText(totals.at(-1) ?? 0)}.`;
  const box = { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': words };
  return svg('svg', box, ...lines, ...areas);
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}

/** Returns a round number that is at least as large as each of the values. */
function ceiling(values: readonly number[]): number {
  const highest = Math.max(...values, 1);
  const power = 10 ** Math.floor(Math.log10(highest));
  return [1, 2, 5, 10].map((step) => step * power).find((round) => round >= highest) ?? highest;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
