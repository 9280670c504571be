/** The builder's metrics. Statsd keys are those of the Python Nodepool, which dashboards and alerts use. */

import { counter, duration, gauge, statsdName as name, statsdPart as part } from '@nodepool/core';

const BUILD_SECONDS = [60, 300, 600, 1200, 1800, 3600, 7200, 14_400, 28_800];
const UPLOAD_SECONDS = [10, 30, 60, 300, 600, 1200, 3600, 7200, 21_600];

export const BUILD_DURATION = duration(
  'nodepool_image_build_duration_seconds',
  ['image'],
  'Durations of builds, including failed ones.',
  BUILD_SECONDS,
  ({ image }) => [`nodepool.dib_image_build.${name(image)}.status.duration`],
);

export const BUILD_EXIT_CODE = gauge(
  'nodepool_image_build_exit_code',
  ['image'],
  'Exit status of the last build; 1 if it failed without one.',
  ({ image }) => [`nodepool.dib_image_build.${name(image)}.status.rc`],
);

export const LAST_BUILD = gauge(
  'nodepool_image_last_build_timestamp_seconds',
  ['image'],
  'End of the last build, including failed ones since the start of the builder.',
  ({ image }) => [`nodepool.dib_image_build.${name(image)}.status.last_build`],
);

/** 1 while the files on the disk belong to another installation than the records in ZooKeeper. */
export const FOREIGN_FILES = gauge(
  'nodepool_builder_foreign_files',
  ['host'],
  '1 if the image files belong to another installation, and are not deleted.',
);

export const IMAGE_SIZE = gauge(
  'nodepool_image_size_bytes',
  ['image', 'format'],
  'Disk usage of the last build.',
  ({ image, format }) => [`nodepool.dib_image_build.${name(image)}.${name(format)}.size`],
);

export const UPLOAD_DURATION = duration(
  'nodepool_image_upload_duration_seconds',
  ['image', 'provider'],
  'Durations of successful uploads.',
  UPLOAD_SECONDS,
  ({ image, provider }) => [`nodepool.image_update.${name(image)}.${name(provider)}`],
);

export const FAILED_UPLOADS = counter(
  'nodepool_image_uploads_failed_total',
  ['image', 'provider', 'reason'],
  'Failed uploads; each is retried.',
);

export const FAILED_BUILDS = counter(
  'nodepool_image_builds_failed_total',
  ['image', 'reason'],
  'Failed builds; each is retried.',
);

export const BUILD_REQUESTS = gauge<never>(
  'nodepool_image_build_requests',
  [],
  'Images with a requested build that has not started.',
  () => ['nodepool.image_build_requests'],
);

export const IMAGE_BUILD_REQUESTS = gauge(
  'nodepool_image_build_requested',
  ['image'],
  '1 while a requested build has not started.',
  ({ image }) => [`nodepool.image.${name(image)}.image_build_requests`],
);

/** `what`: `current_builds`, `current_uploads`, `build_workers`, `upload_workers`. */
export const BUILDER_WORK = gauge(
  'nodepool_builder_work',
  ['host', 'what'],
  'Running builds and uploads, and their limits.',
  ({ host, what }) => [`nodepool.builder.${part(host)}.${what}`],
);

/** 0: idle; 1: building; 3: paused. */
export const BUILD_STATE = gauge(
  'nodepool_builder_image_build_state',
  ['host', 'image'],
  '0: idle; 1: building; 3: paused.',
  ({ host, image }) => [`nodepool.builder.${part(host)}.image.${name(image)}.build.state`],
);

/** 0: idle; 2: uploading; 3: paused. */
export const UPLOAD_STATE = gauge(
  'nodepool_builder_image_upload_state',
  ['host', 'image', 'provider'],
  '0: idle; 2: uploading; 3: paused.',
  ({ host, image, provider }) => [
    `nodepool.builder.${part(host)}.image.${name(image)}.provider.${name(provider)}.upload.state`,
  ],
);

export const UPLOADED_BYTES = gauge(
  'nodepool_builder_upload_sent_bytes',
  ['host', 'image', 'provider'],
  'Bytes that the running upload has sent.',
);
