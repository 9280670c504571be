/** The charts of the last day. */

import { chart, type ChartOptions } from './chart.js';
import { h } from './dom.js';
import { link } from './links.js';
import type { HistoryStatus, LabelHistory, OverviewDocument, ProviderHistory } from './model.js';
import { ageText, clockText, counted, durationText, numberText } from './text.js';
import { groupClass, NODE_GROUPS, nothing, section } from './widgets.js';

/** Seconds between two samples of the histories of labels and providers. */
const STEP_SECONDS = 300;

export function overviewCharts(
  { samples, step, events }: HistoryStatus,
  { nodes, requests }: Pick<OverviewDocument, 'nodes' | 'requests'>,
  now: number,
): HTMLElement {
  // The present numbers end the charts, so that they agree with the rest of the page.
  const past = ended(samples, step, now);
  const times = [...past.map(({ time }) => time + step), now];
  const counts = [...past.map((sample) => sample.nodes), NODE_GROUPS.map((group) => nodes.groups[group])];
  const queue = [...past.map(({ waiting }) => waiting), requests.waiting];
  const total = counts.map((groups) => groups.reduce((sum, count) => sum + count, 0));
  const failed = samples.map(({ failures }) => failures);
  const length = ageText(now - (times[0] ?? now));
  if (past.length === 0) {
    return section(
      'Last day',
      undefined,
      nothing('The charts begin five minutes after the first start of the launcher.'),
    );
  }
  return section(
    'Last day',
    `${length} of history`,
    charts([
      {
        key: 'nodes',
        title: 'Nodes',
        kind: 'areas',
        times,
        step,
        now,
        summary: `Nodes over ${length}: between ${numberText(Math.min(...total))} and ${counted(Math.max(...total), 'node')}, now ${numberText(total.at(-1) ?? 0)}.`,
        series: NODE_GROUPS.map((group, index) => ({
          title: group,
          class: groupClass(group),
          values: counts.map((groups) => groups[index] ?? 0),
        })),
      },
      {
        key: 'waiting',
        title: 'Waiting requests',
        kind: 'areas',
        size: 'small',
        times,
        step,
        now,
        summary: `Waiting requests over ${length}: at most ${numberText(Math.max(...queue))}, now ${numberText(queue.at(-1) ?? 0)}.`,
        series: [{ title: 'waiting', class: 'series-waiting', values: queue }],
      },
      launchChart(samples, step, now, failed),
    ]),
    events.length === 0 ? undefined : eventList(events),
  );
}

/**
 * Returns the samples of steps that have ended: the present step has no numbers of nodes and requests yet. These
 * numbers are those of the end of a step.
 */
function ended<S extends { readonly time: number }>(samples: readonly S[], step: number, now: number): readonly S[] {
  return samples.filter(({ time }) => time + step <= now);
}

function launchChart(
  samples: readonly { readonly time: number; readonly launches: number; readonly failures: number }[],
  step: number,
  now: number,
  failed: readonly number[],
): ChartOptions {
  return {
    key: 'launches',
    title: 'Launches',
    kind: 'columns',
    size: 'small',
    times: samples.map(({ time }) => time),
    step,
    now,
    summary: `${counted(
      failed.reduce((sum, count) => sum + count, 0),
      'launch',
      'launches',
    )} failed.`,
    series: [
      { title: 'failed', class: 'series-failed', values: failed },
      { title: 'succeeded', class: 'series-launched', values: samples.map((each) => each.launches - each.failures) },
    ],
  };
}

function charts(all: readonly ChartOptions[]): HTMLElement {
  const shown = all.filter(({ series }) => series.some(({ values }) => values.some((value) => value > 0)));
  if (shown.length === 0) return nothing('Nothing happened in this time.');
  return h('div', { class: 'charts' }, ...shown.map(chart));
}

function eventList(events: HistoryStatus['events']): HTMLElement {
  return h(
    'details',
    { class: 'events', 'data-key': 'events' },
    h('summary', {}, `${counted(events.length, 'event')} in this time`),
    h(
      'ul',
      {},
      ...[...events]
        .sort((a, b) => b.time - a.time)
        .map(({ time, text, subject }) =>
          h(
            'li',
            { 'data-key': `${time} ${text}` },
            h('span', { class: 'quiet' }, clockText(time)),
            ' ',
            subject === null ? undefined : link(subject.kind, subject.id),
            subject === null ? undefined : ' ',
            text,
          ),
        ),
    ),
  );
}

export function labelCharts(history: LabelHistory, present: number, now: number): HTMLElement | undefined {
  const past = ended(history, STEP_SECONDS, now);
  if (past.length === 0) return undefined;
  const times = [...past.map(({ time }) => time + STEP_SECONDS), now];
  const queue = [...past.map(({ waiting }) => waiting), present];
  const highest = Math.max(...history.map(({ p95 }) => p95 ?? 0));
  const common = { times: history.map(({ time }) => time), step: STEP_SECONDS, now, size: 'small' } as const;
  return section(
    'Last day',
    undefined,
    charts([
      {
        ...common,
        key: 'waiting',
        title: 'Waiting requests',
        kind: 'areas',
        times,
        summary: `At most ${counted(Math.max(...queue), 'waiting request')}.`,
        series: [{ title: 'waiting', class: 'series-waiting', values: queue }],
      },
      {
        ...common,
        key: 'time',
        title: 'Time to node, p95',
        kind: 'columns',
        summary: `At most ${durationText(highest)}.`,
        format: durationText,
        series: [{ title: 'p95', class: 'series-time', values: history.map(({ p95 }) => p95 ?? 0) }],
      },
      {
        ...common,
        key: 'ended',
        title: 'Ended requests',
        kind: 'columns',
        summary: `${numberText(history.reduce((sum, { fulfilled }) => sum + fulfilled, 0))} fulfilled.`,
        series: [
          { title: 'failed', class: 'series-failed', values: history.map(({ failed }) => failed) },
          { title: 'fulfilled', class: 'series-launched', values: history.map(({ fulfilled }) => fulfilled) },
        ],
      },
    ]),
  );
}

export function providerCharts(history: ProviderHistory, now: number): HTMLElement | undefined {
  if (history.length < 2) return undefined;
  const common = { times: history.map(({ time }) => time), step: STEP_SECONDS, now, size: 'small' } as const;
  const failures = history.map((each) => each.failures);
  const failedCalls = history.map((each) => each.failedCalls);
  return section(
    'Last day',
    undefined,
    charts([
      {
        ...common,
        key: 'used',
        title: 'Instances',
        kind: 'areas',
        times: history.map(({ time }) => Math.min(time + STEP_SECONDS, now)),
        summary: `At most ${counted(Math.max(...history.map(({ used }) => used)), 'instance')}.`,
        series: [{ title: 'used', class: 'group-in-use', values: history.map(({ used }) => used) }],
      },
      launchChart(history, STEP_SECONDS, now, failures),
      {
        ...common,
        key: 'calls',
        title: 'API calls',
        kind: 'columns',
        summary: `${counted(
          failedCalls.reduce((sum, count) => sum + count, 0),
          'call',
        )} failed.`,
        series: [
          { title: 'failed', class: 'series-failed', values: failedCalls },
          { title: 'throttled', class: 'series-waiting', values: history.map(({ throttled }) => throttled) },
          {
            title: 'succeeded',
            class: 'group-in-use',
            values: history.map((each) => Math.max(0, each.calls - each.failedCalls - each.throttled)),
          },
        ],
      },
      {
        ...common,
        key: 'latency',
        title: 'Mean duration of a call',
        kind: 'columns',
        summary: 'Mean duration of calls of the cloud API.',
        format: durationText,
        series: [{ title: 'per call', class: 'series-time', values: history.map(({ latency }) => latency ?? 0) }],
      },
    ]),
  );
}
