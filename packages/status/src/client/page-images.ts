/** The pages of disk images, with their builds and uploads. */

import { h, type Child } from './dom.js';
import { labelChip, link, name } from './links.js';
import type {
  BuildStatus,
  ImageDocument,
  ImagesDocument,
  ImageStatus,
  ReviewStatus,
  TrialCounts,
  UploadStatus,
} from './model.js';
import type { View } from './page.js';
import { missingPage } from './missing.js';
import { table, type Column } from './table.js';
import { counted, durationText } from './text.js';
import { imageBadge } from './tones.js';
import { age, badge, facts, nothing, section, type Present } from './widgets.js';

export const imagesPage: View<ImagesDocument> = {
  title: () => 'Images',
  draw: ({ document: { images }, present }) => [
    h('h1', { tabindex: -1 }, 'Images'),
    images.length === 0
      ? nothing(
          'The configuration has no disk images; configure them in ',
          h('code', {}, 'diskimages'),
          '. Images of the cloud itself need no builder.',
        )
      : table({
          caption: 'Disk images',
          columns: imageColumns(present),
          rows: images,
          key: (image) => image.name,
          tone: (image) => (isMissing(image) ? 'bad' : undefined),
        }),
  ],
};

/** Returns true if the last failed build is newer than the last successful one. */
function isFailing({ lastFailure, builds }: ImageStatus): boolean {
  if (lastFailure === null) return false;
  return !builds.some(({ state, since }) => state === 'ready' && since > lastFailure.time);
}

/** Returns for each provider the newest usable upload and the outcome of newer ones. */
function currentUploads(uploads: readonly UploadStatus[]): UploadStatus[] {
  const providers = [...new Set(uploads.map(({ provider }) => provider))].sort();
  return providers.flatMap((provider) => {
    const newestFirst = uploads.filter((each) => each.provider === provider).sort((a, b) => b.since - a.since);
    const usable = newestFirst.findIndex(({ state, failure }) => state === 'ready' && failure === null);
    return usable < 0
      ? newestFirst.slice(0, 2)
      : newestFirst.slice(0, Math.min(usable, 1)).concat(newestFirst[usable] ?? []);
  });
}

/** Returns true if no provider has the image. */
function isMissing({ uploads }: ImageStatus): boolean {
  return !uploads.some(({ state }) => state === 'ready');
}

function imageColumns(present: Present): Column<ImageStatus>[] {
  return [
    {
      title: 'Image',
      cell: (image) => [
        link('image', image.name),
        image.paused ? h('span', { class: 'below' }, badge('paused', 'busy')) : undefined,
        image.requested === null
          ? undefined
          : h('span', { class: 'quiet below' }, 'build requested ', age(image.requested, present), ' ago'),
      ],
    },
    {
      title: 'Newest build',
      cell: ({ builds: [newest] }) =>
        newest === undefined
          ? [h('span', { class: 'bad-text' }, 'never built')]
          : [
              imageBadge(newest.state),
              ' ',
              age(newest.since, present),
              h(
                'span',
                { class: 'quiet below' },
                newest.builder === '' ? '' : 'on ',
                newest.builder === '' ? '' : link('program', newest.builder),
              ),
            ],
    },
    {
      title: 'Uploads',
      cell: ({ uploads }) =>
        uploads.length === 0
          ? [h('span', { class: 'bad-text' }, 'no provider has it')]
          : currentUploads(uploads).map(({ provider, state, since, progress, id }) =>
              h(
                'div',
                { class: 'line', 'data-key': `${provider} ${id}` },
                imageBadge(state, progress),
                ' ',
                link('provider', provider),
                ' ',
                h('span', { class: 'quiet' }, age(since, present)),
              ),
            ),
    },
    {
      title: 'Last failure',
      cell: ({ lastFailure }) =>
        lastFailure === null
          ? []
          : [
              h('span', { class: 'reason' }, lastFailure.text),
              h('span', { class: 'quiet below' }, age(lastFailure.time, present), ' ago'),
            ],
    },
    { title: 'Labels', wideOnly: true, cell: ({ labels }) => labels.map((label) => labelChip(label)) },
  ];
}

export const imagePage: View<ImageDocument> = {
  title: ({ id }) => `Image ${id ?? ''}`,
  draw: ({ document: { image }, present, route }) =>
    image === null
      ? missingPage(route)
      : [
          h(
            'h1',
            { tabindex: -1 },
            'Image ',
            name(image.name),
            ' ',
            image.paused ? badge('paused', 'busy') : undefined,
          ),
          callout(image, present),
          facts(
            [
              'Labels',
              image.labels.length === 0 ? ['no label uses it'] : image.labels.map((label) => labelChip(label)),
            ],
            ['Build requested', image.requested === null ? undefined : [age(image.requested, present), ' ago']],
          ),
          section('Builds', counted(image.builds.length, 'build'), builds(image, present)),
          section('Uploads', counted(image.uploads.length, 'upload'), uploads(image, present)),
        ],
};

function callout(image: ImageStatus, present: Present): Child {
  const lastFailure = isFailing(image) ? image.lastFailure : null;
  if (lastFailure === null && !isMissing(image)) return undefined;
  return h(
    'div',
    { class: `callout ${isMissing(image) ? 'bad' : 'busy'}`, 'data-key': 'callout' },
    isMissing(image)
      ? h('p', {}, h('b', {}, 'No provider has a usable upload of this image; its labels cannot be served.'))
      : undefined,
    lastFailure === null
      ? undefined
      : h(
          'p',
          {},
          'Last failure: ',
          h('q', {}, lastFailure.text),
          h('span', { class: 'quiet' }, ' ', age(lastFailure.time, present), ' ago'),
        ),
    lastFailure === null || lastFailure.log === null
      ? undefined
      : h(
          'p',
          {},
          'Log: ',
          h('code', {}, lastFailure.log),
          lastFailure.builder === null ? undefined : ` on ${lastFailure.builder}`,
        ),
  );
}

function builds({ builds: all, name: image }: ImageStatus, present: Present): HTMLElement {
  if (all.length === 0)
    return nothing('The image was never built. Request a build: ', h('code', {}, `nodepool image-build ${image}`));
  return table({
    caption: 'Builds, newest first',
    columns: [
      { title: 'Build', cell: ({ id }: BuildStatus) => [h('code', {}, id)] },
      { title: 'State', cell: ({ state }) => [imageBadge(state)] },
      { title: 'Age', numeric: true, cell: ({ since }) => [age(since, present)] },
      { title: 'Duration', numeric: true, cell: ({ duration }) => [duration === null ? '–' : durationText(duration)] },
      { title: 'Formats', cell: ({ formats }) => [formats.join(', ')] },
      { title: 'Builder', cell: ({ builder }) => (builder === '' ? [] : [link('program', builder)]) },
      { title: 'Failure', cell: ({ failure }) => [failure ?? ''] },
    ],
    rows: all,
    key: ({ id }) => id,
    tone: ({ state }) => (state === 'failed' ? 'bad' : undefined),
  });
}

/** The stage of an upload with its evidence, and since when it waits there. */
function stageColumn(present: Present): Column<UploadStatus> {
  return {
    title: 'Stage',
    cell: ({ review }) =>
      review === null
        ? []
        : [
            imageBadge(review.standing),
            ' ',
            h('span', { class: 'quiet' }, age(review.since, present)),
            review.pinned === null ? undefined : h('span', { class: 'below' }, `pinned by ${review.pinned}`),
            review.reason === '' ? undefined : h('span', { class: 'reason below' }, review.reason),
            review.trial === null ? undefined : h('span', { class: 'quiet below' }, trialText(review.trial)),
            review.by === '' ? undefined : h('span', { class: 'quiet below' }, `by ${review.by}`),
          ],
  };
}

function trialText({ candidate, current, judged }: NonNullable<ReviewStatus['trial']>): string {
  const part = ({ launches, failed_launches, slow_launches, jobs, failed_jobs }: TrialCounts): string =>
    `${failed_launches} of ${launches} launches failed, ${slow_launches} were slow, ${failed_jobs} of ${jobs} jobs failed`;
  return `${counted(judged, 'node')} judged; ${part(candidate)} (current image: ${part(current)})`;
}

function uploads({ uploads: all }: ImageStatus, present: Present): HTMLElement {
  if (all.length === 0)
    return nothing('No provider has the image. A builder uploads it after its first successful build.');
  return table({
    caption: 'Uploads',
    columns: [
      { title: 'Provider', cell: ({ provider }: UploadStatus) => [link('provider', provider)] },
      { title: 'State', cell: ({ state, progress }) => [imageBadge(state, progress)] },
      { title: 'Age', numeric: true, cell: ({ since }) => [age(since, present)] },
      { title: 'Build', cell: ({ build }) => [h('code', {}, build)] },
      { title: 'Name in the cloud', cell: ({ externalName }) => [name(externalName ?? '')] },
      ...(all.some(({ review }) => review !== null) ? [stageColumn(present)] : []),
      { title: 'Failure', cell: ({ failure }) => [failure ?? ''] },
    ],
    rows: all,
    key: ({ provider, build, id }) => `${provider} ${build} ${id}`,
    tone: ({ state }) => (state === 'failed' ? 'bad' : undefined),
  });
}
