/** Timelines: the phases of a request or a node, drawn to scale, and the same as a table. */

import { h, svg, type Child } from './dom.js';
import { link } from './links.js';
import type { Phase, TimelineSegment } from './model.js';
import { rounded, timeStep } from './scale.js';
import { table, type Column } from './table.js';
import { counted, durationText, shareText } from './text.js';
import { moment, nothing, type Present } from './widgets.js';

const PHASES: Readonly<Record<Phase, string>> = {
  elsewhere: 'on another launcher',
  limit: 'waits for a limit',
  order: 'waits for its turn',
  capacity: 'waits for capacity',
  image: 'waits for an image',
  accepted: 'accepted',
  creating: 'creating',
  booting: 'booting',
  login: 'login',
  handover: 'hand-over',
  ready: 'ready',
  'in-use': 'in use',
  held: 'held',
  deleting: 'deleting',
};

export function phaseText(phase: Phase): string {
  return PHASES[phase];
}

export interface TimelineRow {
  readonly key: string;
  readonly title: Child;
  readonly segments: readonly TimelineSegment[];
}

/** Share of the width from which on the name of a phase fits into its bar. */
const NAMED_SHARE = 0.11;
const MAX_TICKS = 6;

/** Returns the rows on one time axis, and the segments of all rows as a table. */
export function timeline(all: readonly TimelineRow[], present: Present): Child[] {
  // Phases without duration are not shown.
  const rows = all.map((row) => ({ ...row, segments: row.segments.filter(({ from, to }) => to !== from) }));
  const segments = rows.flatMap((row) => row.segments);
  if (segments.length === 0) {
    return [nothing('This launcher did not see the phases. It records them from its start on, for a day.')];
  }
  const now = present.now();
  const from = Math.min(...segments.map((segment) => segment.from));
  const to = Math.max(...segments.map((segment) => segment.to ?? now), from + 0.001);
  return [
    h(
      'div',
      { class: 'timeline', 'data-key': 'timeline' },
      ...rows.map((row) =>
        h(
          'div',
          { class: 'timeline-row', 'data-key': row.key },
          h('span', { class: 'timeline-title' }, row.title),
          bars(row.segments, from, to, now),
        ),
      ),
      h('div', { class: 'timeline-row', 'data-key': 'axis' }, h('span', { class: 'timeline-title' }), axis(to - from)),
    ),
    ...tables(rows, now),
  ];
}

function bars(segments: readonly TimelineSegment[], from: number, to: number, now: number): SVGElement {
  const share = (time: number): number => (time - from) / (to - from);
  return svg(
    'svg',
    { class: 'timeline-bars', 'aria-hidden': 'true' },
    ...segments.map((segment, index) => {
      const start = share(segment.from);
      const width = share(segment.to ?? now) - start;
      const text = PHASES[segment.phase];
      const title = `${text}: ${durationText((segment.to ?? now) - segment.from)}`;
      // A nested graphic clips its text on narrow screens.
      return svg(
        'svg',
        {
          class: `phase-${segment.phase}${segment.failed ? ' failed' : ''}`,
          x: percent(start),
          width: percent(width),
          'data-key': index,
        },
        svg('rect', { width: '100%', height: '100%' }, svg('title', {}, title)),
        width < NAMED_SHARE
          ? undefined
          : svg('text', { x: 6, y: '50%', dy: '0.35em' }, segment.failed ? `${text}: failed` : text),
      );
    }),
  );
}

function axis(span: number): SVGElement {
  const step = timeStep(span, MAX_TICKS);
  const ticks = Array.from({ length: Math.floor(span / step) + 1 }, (_, index) => index * step);
  return svg(
    'svg',
    { class: 'timeline-axis', 'aria-hidden': 'true' },
    ...ticks.map((time) => {
      const share = time / span;
      const anchor = time === 0 ? 'start' : share > 0.95 ? 'end' : 'middle';
      const x = percent(share);
      return svg(
        'g',
        { 'data-key': time },
        svg('line', { x1: x, x2: x, y1: 0, y2: 5 }),
        svg('text', { x, y: 17, 'text-anchor': anchor }, time === 0 ? '0' : durationText(time)),
      );
    }),
  );
}

function percent(share: number): string {
  return `${rounded(share * 1000) / 10}%`;
}

/** Returns the phases of the first row, and those of the others for readers who open them. */
function tables([first, ...others]: readonly TimelineRow[], now: number): Child[] {
  return [
    first === undefined ? undefined : asTable(first, now),
    others.length === 0
      ? undefined
      : h(
          'details',
          { class: 'events', 'data-key': 'others' },
          h('summary', {}, `Phases of ${counted(others.length, 'node')}`),
          ...others.flatMap((row) => [h('h3', { 'data-key': row.key }, copyOf(row.title)), asTable(row, now)]),
        ),
  ];
}

function asTable({ key: rowKey, segments }: TimelineRow, now: number): HTMLElement {
  const length = ({ from, to }: TimelineSegment): number => (to ?? now) - from;
  const whole = segments.reduce((total, segment) => total + length(segment), 0);
  const columns: Column<TimelineSegment>[] = [
    {
      title: 'Phase',
      cell: ({ phase, failed }) => [
        h(
          'span',
          { class: `key phase-${phase}${failed ? ' failed' : ''}` },
          failed ? `${PHASES[phase]}, failed` : PHASES[phase],
        ),
      ],
    },
    { title: 'From', cell: ({ from }) => [moment(from)] },
    {
      title: 'Duration',
      numeric: true,
      cell: (segment) => [segment.to === null ? 'so far ' : '', h('b', {}, durationText(length(segment)))],
    },
    { title: 'Share', numeric: true, cell: (segment) => [shareText(length(segment), whole)] },
    {
      title: 'Detail',
      cell: ({ by, detail }) => [
        by === null ? undefined : by.includes('/') ? link('pool', by) : link('program', by),
        by !== null && detail !== null ? ': ' : undefined,
        detail ?? undefined,
      ],
    },
  ];
  return table({
    caption: `Phases of ${rowKey}`,
    columns,
    rows: segments,
    key: ({ from, phase }) => `${from} ${phase}`,
    foot: [['Sum'], [], [h('b', {}, durationText(whole))], ['100 %'], []],
  });
}

/** Returns a copy, because an element can have only one parent. */
function copyOf(child: Child): Child {
  return child instanceof Node ? child.cloneNode(true) : child;
}
