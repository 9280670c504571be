/** Charts over time: stacked areas and columns, with axes that fit the data, and a table of the same values. */

import { h, svg, type Child } from './dom.js';
import { clockTicks, countTicks, rounded, timeStep } from './scale.js';
import { clockText, numberText } from './text.js';

const WIDTH = 1000;
const HEIGHT = 200;
/** Number of steps between samples from which on the chart has a gap; the launcher records every step that it runs. */
const GAP_STEPS = 1.5;
/** Smallest width of the column of the present step, as a share of that of a whole one. */
const MIN_COLUMN = 0.2;
const MAX_TABLE_ROWS = 25;

export interface Series {
  readonly title: string;
  /** CSS class that sets the colour. */
  readonly class: string;
  readonly values: readonly number[];
}

export interface ChartOptions {
  /** Identity of the chart in the page. */
  readonly key: string;
  readonly title: string;
  /** Description for screen readers. */
  readonly summary: string;
  readonly times: readonly number[];
  /** Seconds between two samples. */
  readonly step: number;
  /** Present time, at which the last column of a chart ends. */
  readonly now: number;
  readonly series: readonly Series[];
  readonly kind: 'areas' | 'columns';
  readonly size?: 'small';
  /** Text of a value. Default: a number. */
  readonly format?: (value: number) => string;
}

/** The drawn charts by key, for the readout of the values at the pointer. */
const drawn = new Map<string, ChartOptions>();

export function chart(options: ChartOptions): HTMLElement {
  const { key, title, summary, kind, size } = options;
  drawn.set(key, options);
  const ticks = ticksOf(options);
  const plot = { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': summary };
  return h(
    'figure',
    { class: `chart ${size ?? ''}`.trim(), 'data-key': key, 'data-chart': key },
    h(
      'figcaption',
      {},
      h('b', {}, title),
      h('span', { class: 'readout', 'data-key': 'readout' }, ...summaryLegend(options)),
    ),
    h(
      'div',
      { class: 'plot' },
      svg('svg', plot, ...(kind === 'areas' ? areas(options, top(ticks)) : columns(options, top(ticks)))),
      axes(options, ticks),
    ),
    asTable(options),
  );
}

function legend(series: readonly Series[], format: (value: number) => string, sums: boolean): Child[] {
  return series.map(({ title, class: name, values }) => {
    const value = sums ? values.reduce((sum, each) => sum + each, 0) : (values.at(-1) ?? 0);
    return h('span', { class: `key ${name}`, 'data-key': title }, `${format(value)} ${title}`);
  });
}

/** Returns the current values, or the sums of columns that count events. */
function summaryLegend({ series, kind, format }: ChartOptions): Child[] {
  return legend(series, format ?? numberText, kind === 'columns' && format === undefined);
}

/** Returns the ticks of the vertical axis; small charts have fewer. Durations have round ticks too. */
function ticksOf(options: ChartOptions): number[] {
  const highest = Math.max(...totals(options), 0);
  const most = options.size === 'small' ? 2 : 4;
  if (options.format === undefined) return countTicks(highest, most);
  const step = timeStep(Math.max(highest, 0.1), most);
  return Array.from({ length: Math.max(1, Math.ceil(highest / step)) + 1 }, (_, index) => index * step);
}

function top(ticks: readonly number[]): number {
  return ticks.at(-1) ?? 1;
}

function totals({ times, series }: ChartOptions): number[] {
  return times.map((_, index) => series.reduce((total, { values }) => total + (values[index] ?? 0), 0));
}

/** Returns the first and the last time; the column of the present step ends at the present. */
function span({ times, kind, step, now }: ChartOptions): readonly [number, number] {
  const from = times[0] ?? 0;
  const last = times.at(-1) ?? 0;
  const end = Math.min(last + step, Math.max(now, last + step * MIN_COLUMN));
  return [from, Math.max(kind === 'columns' ? end : last, from + 1)];
}

/** Returns the horizontal position of a time as a share of the width. */
function position(options: ChartOptions, time: number): number {
  const [from, to] = span(options);
  return (time - from) / (to - from);
}

function areas(options: ChartOptions, highest: number): SVGElement[] {
  const { series, times, step } = options;
  const runs = runsOf(times, step * GAP_STEPS);
  const y = (value: number): number => rounded(HEIGHT - (value / highest) * HEIGHT);
  const below = times.map(() => 0);
  return series.flatMap(({ class: name, values, title }) => {
    const lower = [...below];
    values.forEach((value, index) => (below[index] = (below[index] ?? 0) + value));
    return runs.map(([first, last], run) => {
      const indexes = Array.from({ length: last - first + 1 }, (_, index) => first + index);
      const x = (index: number): number => rounded(position(options, times[index] ?? 0) * WIDTH);
      const upper = indexes.map((index) => `${x(index)},${y(below[index] ?? 0)}`);
      const base = indexes.map((index) => `${x(index)},${y(lower[index] ?? 0)}`).reverse();
      return svg('polygon', { class: name, points: [...upper, ...base].join(' '), 'data-key': `${title} ${run}` });
    });
  });
}

/** Returns the first and the last index of each stretch of samples without a gap. */
function runsOf(times: readonly number[], gap: number): [number, number][] {
  const runs: [number, number][] = [];
  times.forEach((time, index) => {
    const run = runs.at(-1);
    if (run === undefined || time - (times[index - 1] ?? time) > gap) runs.push([index, index]);
    else run[1] = index;
  });
  return runs;
}

function columns(options: ChartOptions, highest: number): SVGElement[] {
  const { series, times, step } = options;
  const [from, to] = span(options);
  return times.flatMap((time, index) => {
    const x = rounded(position(options, time) * WIDTH);
    const width = rounded((Math.min(step, to - time) / (to - from)) * WIDTH * 0.8);
    let below = 0;
    return series.flatMap(({ class: name, values }) => {
      const height = ((values[index] ?? 0) / highest) * HEIGHT;
      below += height;
      return height === 0
        ? []
        : [svg('rect', { class: name, x, width, y: rounded(HEIGHT - below), height: rounded(height) })];
    });
  });
}

/** Returns the grid and the labels of the axes; an own graphic, since the plot is stretched. */
function axes(options: ChartOptions, ticks: readonly number[]): SVGElement {
  const [from, to] = span(options);
  const highest = top(ticks);
  const counts = ticks.map((tick) => {
    const y = `${rounded(100 - (tick / highest) * 100)}%`;
    return svg(
      'g',
      { 'data-key': tick },
      svg('line', { class: 'grid', x1: 0, x2: '100%', y1: y, y2: y }),
      svg('text', { x: -6, y, dy: 4, 'text-anchor': 'end' }, (options.format ?? numberText)(tick)),
    );
  });
  const times = clockTicks(from, to, options.size === 'small' ? 5 : 8).map((time, index) => {
    const share = position(options, time);
    const x = `${rounded(share * 100)}%`;
    // The margin of the chart has room for half a label.
    const anchor = share > 0.99 ? 'end' : 'middle';
    return svg(
      'g',
      { 'data-key': `at ${time}`, class: options.size !== 'small' && index % 2 === 1 ? 'wide-only' : undefined },
      svg('line', { class: 'tick', x1: x, x2: x, y1: '100%', y2: '100%' }),
      svg('text', { x, y: '100%', dy: 15, 'text-anchor': anchor }, clockText(time)),
    );
  });
  return svg('svg', { class: 'axes', 'aria-hidden': 'true' }, ...counts, ...times);
}

function asTable({ times, series, title, format = numberText }: ChartOptions): HTMLElement {
  const every = Math.max(1, Math.ceil(times.length / MAX_TABLE_ROWS));
  const indexes = times.map((_, index) => index).filter((index) => (times.length - 1 - index) % every === 0);
  const rows = indexes
    .reverse()
    .map((index) =>
      h(
        'tr',
        { 'data-key': times[index] },
        h('th', { scope: 'row' }, clockText(times[index] ?? 0)),
        ...series.map(({ values }) => h('td', { class: 'number' }, format(values[index] ?? 0))),
      ),
    );
  return h(
    'details',
    {},
    h('summary', {}, 'As a table'),
    h(
      'table',
      { class: 'small' },
      h('caption', { class: 'hidden' }, title),
      h(
        'thead',
        {},
        h(
          'tr',
          {},
          h('th', { scope: 'col' }, 'Time'),
          ...series.map((each) => h('th', { scope: 'col', class: 'number' }, each.title)),
        ),
      ),
      h('tbody', {}, ...rows),
    ),
  );
}

/** Shows the values at the pointer in place of the current ones. */
export function watchCharts(): void {
  const figureOf = ({ target }: Event): HTMLElement | null =>
    target instanceof Element ? target.closest('[data-chart]') : null;
  document.addEventListener('pointermove', (event) => {
    const figure = figureOf(event);
    const options = drawn.get(figure?.dataset.chart ?? '');
    const plot = figure?.querySelector('.plot');
    if (figure === null || options === undefined || plot === undefined || plot === null) return;
    const box = plot.getBoundingClientRect();
    const [from, to] = span(options);
    const time = from + ((event.clientX - box.left) / box.width) * (to - from);
    const nearest = options.times.reduce(
      (best, each, index) => (Math.abs(each - time) < Math.abs((options.times[best] ?? 0) - time) ? index : best),
      0,
    );
    const at = options.series.map((each) => ({ ...each, values: each.values.slice(0, nearest + 1) }));
    figure
      .querySelector('.readout')
      ?.replaceChildren(
        h('span', { class: 'key at' }, clockText(options.times[nearest] ?? 0)),
        ...legend(at, options.format ?? numberText, false).filter((child) => child !== undefined),
      );
  });
  document.addEventListener(
    'pointerleave',
    (event) => {
      const figure = figureOf(event);
      const options = drawn.get(figure?.dataset.chart ?? '');
      if (figure === null || options === undefined || event.target !== figure) return;
      figure
        .querySelector('.readout')
        ?.replaceChildren(...summaryLegend(options).filter((child) => child !== undefined));
    },
    { capture: true },
  );
}
