/** The builder's metrics. Statsd keys are those of the Python Nodepool, which dashboards and alerts use. */

import { statsdName as name, statsdPart as part, type Counter, type Duration, type Gauge } from '@nodepool/core';

const BUILD_SECONDS = [60, 300, 600, 1200, 1800, 3600, 7200, 14_400, 28_800];
const UPLOAD_SECONDS = [10, 30, 60, 300, 600, 1200, 3600, 7200, 21_600];

export const BUILD_DURATION: Duration<'image'> = {
  kind: 'duration',
  name: 'nodepool_image_build_duration_seconds',
  help: 'Durations of ended builds of disk images, including failed ones.',
  labels: ['image'],
  buckets: BUILD_SECONDS,
  statsd: ({ image }) => [`nodepool.dib_image_build.${name(image)}.status.duration`],
};

export const BUILD_EXIT_CODE: Gauge<'image'> = {
  kind: 'gauge',
  name: 'nodepool_image_build_exit_code',
  help: 'Exit status of the last build of the image; 1 if it failed without one, e.g. by a timeout.',
  labels: ['image'],
  statsd: ({ image }) => [`nodepool.dib_image_build.${name(image)}.status.rc`],
};

export const LAST_BUILD: Gauge<'image'> = {
  kind: 'gauge',
  name: 'nodepool_image_last_build_timestamp_seconds',
  help: 'Time at which the last build of the image ended, including failed builds since the start of the builder.',
  labels: ['image'],
  statsd: ({ image }) => [`nodepool.dib_image_build.${name(image)}.status.last_build`],
};

/** 1 while the files on the disk belong to another installation than the records in ZooKeeper. */
export const FOREIGN_FILES: Gauge<'host'> = {
  kind: 'gauge',
  name: 'nodepool_builder_foreign_files',
  help: '1 if the image files of the builder belong to another installation; they are not deleted then.',
  labels: ['host'],
  statsd: () => [],
};

export const IMAGE_SIZE: Gauge<'image' | 'format'> = {
  kind: 'gauge',
  name: 'nodepool_image_size_bytes',
  help: 'Disk usage of the last build of the image, by format.',
  labels: ['image', 'format'],
  statsd: ({ image, format }) => [`nodepool.dib_image_build.${name(image)}.${name(format)}.size`],
};

export const UPLOAD_DURATION: Duration<'image' | 'provider'> = {
  kind: 'duration',
  name: 'nodepool_image_upload_duration_seconds',
  help: 'Durations of successful uploads of images.',
  labels: ['image', 'provider'],
  buckets: UPLOAD_SECONDS,
  statsd: ({ image, provider }) => [`nodepool.image_update.${name(image)}.${name(provider)}`],
};

export const FAILED_UPLOADS: Counter<'image' | 'provider' | 'reason'> = {
  kind: 'counter',
  name: 'nodepool_image_uploads_failed_total',
  help: 'Failed uploads of images; each is retried.',
  labels: ['image', 'provider', 'reason'],
  statsd: () => [],
};

export const FAILED_BUILDS: Counter<'image' | 'reason'> = {
  kind: 'counter',
  name: 'nodepool_image_builds_failed_total',
  help: 'Failed builds of images; each is retried.',
  labels: ['image', 'reason'],
  statsd: () => [],
};

export const BUILD_REQUESTS: Gauge<never> = {
  kind: 'gauge',
  name: 'nodepool_image_build_requests',
  help: 'Number of images with a requested build that has not started.',
  labels: [],
  statsd: () => ['nodepool.image_build_requests'],
};

export const IMAGE_BUILD_REQUESTS: Gauge<'image'> = {
  kind: 'gauge',
  name: 'nodepool_image_build_requested',
  help: '1 while a build of the image is requested and has not started, else 0.',
  labels: ['image'],
  statsd: ({ image }) => [`nodepool.image.${name(image)}.image_build_requests`],
};

/** `what`: `current_builds`, `current_uploads`, `build_workers`, `upload_workers`. */
export const BUILDER_WORK: Gauge<'host' | 'what'> = {
  kind: 'gauge',
  name: 'nodepool_builder_work',
  help: 'Running builds and uploads, and their maximum numbers.',
  labels: ['host', 'what'],
  statsd: ({ host, what }) => [`nodepool.builder.${part(host)}.${what}`],
};

/** 0: idle; 1: building; 3: paused. */
export const BUILD_STATE: Gauge<'host' | 'image'> = {
  kind: 'gauge',
  name: 'nodepool_builder_image_build_state',
  help: 'State of the image in the builder. 0: idle; 1: building; 3: paused.',
  labels: ['host', 'image'],
  statsd: ({ host, image }) => [`nodepool.builder.${part(host)}.image.${name(image)}.build.state`],
};

/** 0: idle; 2: uploading; 3: paused. */
export const UPLOAD_STATE: Gauge<'host' | 'image' | 'provider'> = {
  kind: 'gauge',
  name: 'nodepool_builder_image_upload_state',
  help: "State of the image's upload to the provider. 0: idle; 2: uploading; 3: paused.",
  labels: ['host', 'image', 'provider'],
  statsd: ({ host, image, provider }) => [
    `nodepool.builder.${part(host)}.image.${name(image)}.provider.${name(provider)}.upload.state`,
  ],
};

export const UPLOADED_BYTES: Gauge<'host' | 'image' | 'provider'> = {
  kind: 'gauge',
  name: 'nodepool_builder_upload_sent_bytes',
  help: 'Bytes that the running upload has sent.',
  labels: ['host', 'image', 'provider'],
  statsd: () => [],
};
