/** The page of GitHub Actions: scale sets, why jobs wait, and times from GitHub's queue to a runner that is online. */

import { h, type Child } from './dom.js';
import { jobName, labelChip, link, name } from './links.js';
import type { GithubDocument, JobRow, RepositoryTimes, ScaleSetStatus, TimesOfPhase } from './model.js';
import type { View } from './page.js';
import { table, type Column } from './table.js';
import { counted, durationText, numberText } from './text.js';
import { age, badge, nothing, section, type Present, type Tone } from './widgets.js';

export const githubPage: View<GithubDocument> = {
  title: () => 'GitHub Actions',
  draw: ({ document, present }) => {
    const { complete, scaleSets, repositories, jobs, counts } = document;
    const heading = h('h1', { tabindex: -1 }, 'GitHub Actions');
    if (scaleSets.length === 0) {
      return [
        heading,
        complete
          ? nothing(
              'No bridge has served a scale set yet. Start ',
              h('code', {}, 'nodepool-github'),
              ' with its settings.',
            )
          : nothing('The launcher has not read the records of bridges yet.'),
      ];
    }
    const waiting = jobs.filter(({ state }) => state === 'offered' || state === 'assigned');
    const running = jobs.filter(({ state }) => state === 'running');
    const ended = jobs.filter(({ state }) => state === 'completed');
    return [
      heading,
      h(
        'p',
        { class: 'lead' },
        `${counted(counts.waiting, 'job waits', 'jobs wait')} for a runner, ${numberText(counts.running)} run. Bridges serve `,
        `${counted(scaleSets.length, 'scale set')}.`,
      ),
      section('Scale sets', undefined, scaleSetTable(scaleSets, present)),
      section(
        'Waiting jobs',
        more(counts.waiting, waiting.length),
        waiting.length === 0 ? nothing('No job waits.') : waitingTable(waiting, present),
      ),
      section(
        'Times by repository',
        'medians and 95th percentiles of the last jobs',
        repositories.length === 0 ? nothing('No job has started since the bridges did.') : timesTable(repositories),
      ),
      section(
        'Running jobs',
        more(counts.running, running.length),
        running.length === 0 ? nothing('No job runs.') : runningTable(running, present),
      ),
      ended.length === 0 ? undefined : section('Ended jobs', 'the last ones', endedTable(ended, present)),
    ];
  },
};

function more(total: number, shown: number): string | undefined {
  return total > shown ? `the ${shown} oldest of ${numberText(total)}` : undefined;
}

function scaleSetTable(scaleSets: readonly ScaleSetStatus[], present: Present): HTMLElement {
  return table({
    caption: 'Scale sets',
    columns: [
      {
        title: 'Scale set',
        cell: ({ name: text, url, nodeLabel }: ScaleSetStatus) => [
          url === null ? name(text) : h('a', { class: 'name', href: url, rel: 'noreferrer' }, name(text)),
          h('span', { class: 'below' }, labelChip(nodeLabel)),
        ],
      },
      {
        title: 'State',
        cell: ({ problem, changed }) =>
          problem === null
            ? [badge('connected', 'good')]
            : [badge('problem', 'bad'), ' ', h('span', { class: 'reason' }, problem), h('span', { class: 'quiet below' }, 'since ', age(changed, present))], // prettier-ignore
      },
      {
        title: 'Jobs',
        cell: ({ jobs: { assigned, running, available } }) => [
          `${numberText(running)} run, ${numberText(Math.max(0, assigned - running))} wait`,
          available === 0 ? undefined : h('span', { class: 'quiet below' }, `${numberText(available)} offered`),
        ],
      },
      {
        title: 'Runners',
        cell: ({ runners }) => [
          runners.length === 0 ? '0' : runners.map(({ state, count }) => `${numberText(count)} ${state}`).join(', '),
        ],
      },
      {
        title: 'May get',
        cell: ({ capacity, capacityReason }) => [
          counted(capacity, 'job'),
          h('span', { class: 'quiet below' }, capacityReason),
        ],
      },
      {
        title: 'Bridge',
        wideOnly: true,
        cell: ({ bridge, bridges }) => [
          name(bridge),
          h(
            'span',
            { class: 'quiet below' },
            bridges > 1 ? `${counted(bridges - 1, 'bridge')} on standby` : 'no standby',
          ),
        ],
      },
    ],
    rows: scaleSets,
    key: (set) => set.name,
    tone: ({ problem }) => (problem === null ? undefined : 'bad'),
  });
}

const JOB: Column<JobRow> = {
  title: 'Job',
  cell: (job) => [...jobName(job), h('span', { class: 'quiet below' }, name(job.scaleSet))],
};

function waitingTable(rows: readonly JobRow[], present: Present): HTMLElement {
  return table({
    caption: 'Waiting jobs, longest first',
    columns: [
      JOB,
      { title: 'Waits for', numeric: true, cell: ({ queued, since }: JobRow) => [age(queued ?? since, present)] },
      { title: 'Step', cell: ({ state }) => [badge(state, state === 'offered' ? 'idle' : 'busy')] },
      {
        title: 'Reason',
        cell: ({ says, request, node }) => [
          h(
            'span',
            { class: 'reason' },
            request?.reason === undefined || request.reason === '' ? says : request.reason,
          ),
          h('span', { class: 'quiet below' }, ...places(request?.id ?? null, node)),
        ],
      },
    ],
    rows,
    key: ({ id }) => id,
  });
}

function places(request: string | null, node: string | null): Child[] {
  return [
    ...(request === null ? [] : ['request ', link('request', request)]),
    ...(request === null || node === null ? [] : [', ']),
    ...(node === null ? [] : ['node ', link('node', node)]),
  ];
}

function runningTable(rows: readonly JobRow[], present: Present): HTMLElement {
  return table({
    caption: 'Running jobs',
    columns: [
      JOB,
      { title: 'Runs for', numeric: true, cell: ({ since }: JobRow) => [age(since, present)] },
      { title: 'Node', cell: ({ node }) => (node === null ? [] : [link('node', node)]) },
    ],
    rows,
    key: ({ id }) => id,
  });
}

const RESULTS: Readonly<Record<string, Tone>> = { succeeded: 'good', failed: 'bad' };

function endedTable(rows: readonly JobRow[], present: Present): HTMLElement {
  return table({
    caption: 'Ended jobs',
    columns: [
      JOB,
      {
        title: 'Result',
        cell: ({ result }: JobRow) => [badge(result ?? 'unknown', RESULTS[(result ?? '').toLowerCase()] ?? 'idle')],
      },
      { title: 'Ended', numeric: true, cell: ({ since }) => [age(since, present), ' ago'] },
    ],
    rows,
    key: ({ id }) => id,
  });
}

/** The phases in their order, with their columns. */
const PHASES: readonly (readonly [string, string])[] = [
  ['queued', "GitHub's queue"],
  ['node', 'Node'],
  ['register', 'Registration'],
  ['start', 'Runner start'],
  ['online', 'Queued to online'],
  ['waiting', 'Assigned to started'],
  ['running', 'Job'],
];

function timesTable(rows: readonly RepositoryTimes[]): HTMLElement {
  const columns = PHASES.map(([phase, title]): Column<RepositoryTimes> => {
    return { title, numeric: true, cell: ({ phases }) => timesCell(phases[phase], phase === 'online') };
  });
  return table({
    caption: 'Times by repository',
    columns: [
      {
        title: 'Repository',
        cell: ({ repository, scaleSet }: RepositoryTimes) => [
          name(repository),
          h('span', { class: 'quiet below' }, name(scaleSet)),
        ],
      },
      ...columns,
      {
        title: 'Jobs',
        numeric: true,
        wideOnly: true,
        cell: ({ phases }) => [numberText(Math.max(0, ...Object.values(phases).map((times) => times?.count ?? 0)))],
      },
    ],
    rows,
    key: ({ repository, scaleSet }) => `${scaleSet} ${repository}`,
  });
}

function timesCell(times: TimesOfPhase | undefined, isMain: boolean): Child[] {
  if (times === undefined) return ['–'];
  const median = durationText(times.p50);
  return [isMain ? h('b', {}, median) : median, h('span', { class: 'quiet below' }, `p95 ${durationText(times.p95)}`)];
}
