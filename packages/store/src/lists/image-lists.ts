/** The lists of uploads, of builds, and of the status of images. Names and order are those of the Python Nodepool. */

import type { ImageBuild, ImageBuildFailure, ImageUpload } from '@nodepool/core';
import { BUILD_STATES, isUsableUpload, UPLOAD_STATES } from '@nodepool/core';
import { standingsOf } from '../images/image-standing.js';
import type { ImageStore } from '../images/image-store.js';
import { ageColumn } from './age.js';
import { createRecordList, type ColumnChoice, type ListColumn, type RecordList } from './record-list.js';
import { cellText } from './cell-text.js';

export interface ImageListOptions {
  readonly columns: ColumnChoice;
  /** Milliseconds since the epoch; the end of ages in a table. */
  readonly now: number;
}

/**
 * Lists all uploads, by image and age of the builds. A ready upload is shown as `gone` while its image is not in the
 * cloud. Throws `UnknownFieldError`.
 */
export function imageList(
  images: Pick<ImageStore, 'images' | 'builds' | 'uploads'>,
  options: ImageListOptions,
): RecordList {
  const rows = [...images.images()].flatMap((image) => {
    const age = new Map(images.builds(image).map(({ id }, index) => [id, index]));
    const place = ({ build }: ImageUpload): number => age.get(build) ?? age.size;
    return [...images.uploads({ image })].sort((a, b) => place(a) - place(b) || compare(a.provider, b.provider));
  });
  const stages = stagesOf(rows);
  const columns: readonly ListColumn<ImageUpload>[] = [
    { field: 'id', header: 'Build ID', value: ({ build }) => build },
    { field: 'upload_id', header: 'Upload ID', value: ({ id }) => id },
    { field: 'provider', header: 'Provider', value: ({ provider }) => provider },
    { field: 'image', header: 'Image', value: ({ image }) => image },
    { field: 'external_name', header: 'Provider Image Name', value: ({ external_name: name }) => name },
    { field: 'external_id', header: 'Provider Image ID', value: ({ external_id: id }) => id },
    {
      field: 'state',
      header: 'State',
      values: [...UPLOAD_STATES, 'gone'],
      value: (upload) => (upload.state === 'ready' && !isUsableUpload(upload) ? 'gone' : upload.state),
    },
    ageColumn('age', 'Age', options.now, ({ state_time: time }) => time),
    {
      field: 'progress',
      header: 'Progress',
      detail: true,
      value: ({ progress = null }) => progress,
      text: (value) => (value === null ? '' : `${cellText(value)} %`),
      order: (value) => (typeof value === 'number' ? value : undefined),
    },
    { field: 'stage', header: 'Stage', detail: true, value: (upload) => stages.get(upload) ?? null },
    { ...ageColumn('stage_age', 'Stage Age', options.now, ({ review }) => review?.since ?? null), detail: true },
    { field: 'stage_by', header: 'Stage By', detail: true, value: ({ review }) => review?.by ?? null },
    { field: 'stage_reason', header: 'Stage Reason', detail: true, value: ({ review }) => review?.reason ?? null },
  ];
  return createRecordList(columns, options.columns, rows);
}

/**
 * Returns the stages of uploads, with the pins, of images and providers where at least one upload has a review.
 */
function stagesOf(uploads: readonly ImageUpload[]): ReadonlyMap<ImageUpload, string> {
  const groups = new Map<string, ImageUpload[]>();
  for (const upload of uploads) {
    const key = `${upload.image}/${upload.provider}`;
    groups.set(key, [...(groups.get(key) ?? []), upload]);
  }
  const stages = new Map<ImageUpload, string>();
  for (const group of groups.values()) {
    if (!group.some(({ review }) => review !== undefined && review !== null)) continue;
    for (const [upload, standing] of standingsOf(group, true)) {
      stages.set(upload, upload.review?.pinned === undefined ? standing : `${standing}, pinned`);
    }
  }
  return stages;
}

/** Returns the name of a build for users, which is also that of its files: the image and the id. */
export function dibImageId({ image, id }: Pick<ImageBuild, 'image' | 'id'>): string {
  return `${image}-${id}`;
}

/** Lists all builds, by image and age. Ready builds of a paused image are `paused`. Throws `UnknownFieldError`. */
export function dibImageList(
  images: Pick<ImageStore, 'images' | 'builds' | 'paused'>,
  options: ImageListOptions,
): RecordList {
  const rows = [...images.images()].flatMap((image) => images.builds(image));
  const stateOf = ({ image, state }: ImageBuild): string =>
    state === 'ready' && images.paused(image) ? 'paused' : state;
  const columns: readonly ListColumn<ImageBuild>[] = [
    { field: 'id', header: 'ID', value: dibImageId },
    { field: 'image', header: 'Image', value: ({ image }) => image },
    { field: 'builder', header: 'Builder', value: ({ builder }) => builder },
    { field: 'formats', header: 'Formats', value: ({ formats }) => formats },
    { field: 'state', header: 'State', values: [...BUILD_STATES, 'paused'], value: stateOf },
    ageColumn('age', 'Age', options.now, ({ state_time: time }) => time),
  ];
  return createRecordList(columns, options.columns, rows);
}

/** Returns the last failed build of an image if the image fails to build; undefined if a newer build is ready. */
export function unresolvedFailure(
  images: Pick<ImageStore, 'builds' | 'lastBuildFailure'>,
  image: string,
): ImageBuildFailure | undefined {
  const failure = images.lastBuildFailure(image);
  if (failure === undefined) return undefined;
  const isResolved = images
    .builds(image)
    .some(({ state, state_time: time }) => state === 'ready' && time > failure.time);
  return isResolved ? undefined : failure;
}

/** Lists the images in ZooKeeper with their pause, build request and last failed build. */
export function imageStatus(
  images: Pick<ImageStore, 'images' | 'builds' | 'paused' | 'buildRequestedAt' | 'isBuilding' | 'lastBuildFailure'>,
  options: ImageListOptions,
): RecordList {
  const requestOf = (image: string): string | null => {
    if (images.buildRequestedAt(image) === undefined) return null;
    return images.isBuilding(image) ? 'building' : 'pending';
  };
  const failedAt = (image: string): number | null => unresolvedFailure(images, image)?.time ?? null;
  const ofFailure = (
    field: string,
    header: string,
    valueOf: (failure: ImageBuildFailure) => string | null,
  ): ListColumn<string> => ({
    ...{ field, header, detail: true },
    value: (image) => {
      const failure = unresolvedFailure(images, image);
      return failure === undefined ? null : valueOf(failure);
    },
  });
  const columns: readonly ListColumn<string>[] = [
    { field: 'image', header: 'Image', value: (image) => image },
    {
      field: 'paused',
      header: 'Paused',
      values: ['True', 'False'],
      value: (image) => images.paused(image),
      text: (value) => (value === true ? 'True' : 'False'),
    },
    { field: 'build_request', header: 'Build Request', values: ['', 'pending', 'building'], value: requestOf },
    ageColumn('build_request_age', 'Build Request Age', options.now, (image) => images.buildRequestedAt(image) ?? null),
    ofFailure('last_failure', 'Last Failure', ({ message }) => message),
    { ...ageColumn('last_failure_age', 'Last Failure Age', options.now, failedAt), detail: true },
    ofFailure('last_failure_builder', 'Last Failure Builder', ({ builder }) => builder),
    ofFailure('last_failure_log', 'Last Failure Log', ({ log }) => log),
  ];
  return createRecordList(columns, options.columns, [...images.images()]);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
