/** The section of disk images, with their builds and uploads. */

import { h, type Child } from './dom.js';
import type { BuildStatus, ImageStatus, UploadStatus } from './status.js';
import { age, badge, nothing, table, type Present } from './widgets.js';

export function imagesSection(images: readonly ImageStatus[], present: Present): Child[] {
  if (images.length === 0) return [nothing('The configuration has no disk images.')];
  const rows = images.map((image) => ({ key: image.name, cells: cellsOf(image, present) }));
  return [table('Disk images', ['Image', 'Builds', 'Uploads'], rows)];
}

function cellsOf({ name, paused, requested, builds, uploads }: ImageStatus, present: Present): Child[][] {
  return [
    [
      h('b', {}, name),
      ...(paused ? [' ', badge('paused', 'busy')] : []),
      requested === null
        ? undefined
        : h('span', { class: 'quiet' }, ' build asked for ', age(requested, present), ' ago'),
    ],
    builds.length === 0
      ? [h('span', { class: 'quiet' }, 'never built')]
      : builds.map((build) => buildOf(build, present)),
    uploads.length === 0
      ? [h('span', { class: 'quiet' }, 'nowhere')]
      : uploads.map((upload) => uploadOf(upload, present)),
  ];
}

const KINDS: Readonly<Record<string, 'good' | 'busy' | 'bad' | 'idle'>> = {
  ready: 'good',
  building: 'busy',
  uploading: 'busy',
  failed: 'bad',
};

function buildOf({ id, state, since, builder, formats }: BuildStatus, present: Present): HTMLElement {
  const of = [formats.join(', '), builder].filter((each) => each !== '').join(' on ');
  return h(
    'div',
    { 'data-key': id, title: `build ${id}` },
    badge(state, KINDS[state] ?? 'idle'),
    ' ',
    age(since, present),
    h('span', { class: 'quiet' }, of === '' ? undefined : ` ${of}`),
  );
}

function uploadOf({ provider, state, since, progress }: UploadStatus, present: Present): HTMLElement {
  const percent = progress === null || state !== 'uploading' ? '' : ` ${Math.round(progress)} %`;
  return h(
    'div',
    { 'data-key': `${provider} ${state}` },
    badge(`${state}${percent}`, KINDS[state] ?? 'idle'),
    ` ${provider} `,
    age(since, present),
  );
}
