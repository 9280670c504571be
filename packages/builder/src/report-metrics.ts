/** Reports a builder's work whenever the metrics are collected. */

import { requiredFormats, type NodepoolConfig } from '@nodepool/config';
import type { Gauge, MetricLabels, Metrics } from '@nodepool/core';
import type { BuilderActivity } from './activity.js';
import {
  BUILD_EXIT_CODE,
  BUILD_REQUESTS,
  BUILD_STATE,
  BUILDER_WORK,
  IMAGE_BUILD_REQUESTS,
  IMAGE_SIZE,
  LAST_BUILD,
  UPLOAD_STATE,
  UPLOADED_BYTES,
} from './builder-metrics.js';
import type { BuilderContext } from './context.js';

/** State numbers of the Python builder. */
const STATES = { idle: 0, building: 1, uploading: 2, paused: 3 } as const;

export interface ReportSources {
  readonly config: () => NodepoolConfig | undefined;
  readonly activity: () => BuilderActivity;
  readonly workers: { readonly build: number; readonly upload: number };
}

type SetGauge = <L extends string>(gauge: Gauge<L>, labels: MetricLabels<L>, value: number) => void;

/** Starts reporting. Returns a function that ends it. */
export function reportBuilder(context: BuilderContext, sources: ReportSources): () => void {
  const { metrics } = context;
  /** The series of the last report, each with a function that removes it. */
  let last = new Map<string, () => void>();
  /** The formats of all images that were ever configured. */
  const formats = new Map<string, ReadonlySet<string>>();
  return metrics.onCollect(() => {
    const series = new Map<string, () => void>();
    report(context, sources, (gauge, labels, value) => {
      metrics.set(gauge, labels, value);
      const key = [gauge.name, ...gauge.labels.map((name) => labels[name])].join('\0');
      series.set(key, () => metrics.set(gauge, labels, undefined));
    });
    for (const [key, remove] of last) if (!series.has(key)) remove();
    last = series;
    const config = sources.config();
    if (config !== undefined) removeResults(metrics, config, formats);
  });
}

/** Reports the builds before the start of this process, so that its restart does not end alerts about old images. */
export function reportEarlierBuilds({ metrics, store }: BuilderContext, config: NodepoolConfig): void {
  for (const { name: image, abstract } of config.diskImages.values()) {
    if (abstract) continue;
    // Failed builds are left out: the builder that ran the last one compares its time with those of other builders.
    const ready = [...store.images.builds(image)].filter(({ state }) => state === 'ready');
    const endedAt = Math.max(...ready.map(({ state_time: time }) => time));
    if (ready.length > 0) metrics.set(LAST_BUILD, { image }, Math.floor(endedAt));
  }
}

/** Removes the results of builds of images that are no longer built, which would raise alerts. */
function removeResults(metrics: Metrics, config: NodepoolConfig, formats: Map<string, ReadonlySet<string>>): void {
  for (const { name, abstract } of config.diskImages.values()) {
    if (!abstract) formats.set(name, new Set([...(formats.get(name) ?? []), ...requiredFormats(config, name)]));
  }
  for (const [image, known] of formats) {
    if (config.diskImages.get(image)?.abstract === false) continue;
    metrics.set(BUILD_EXIT_CODE, { image }, undefined);
    metrics.set(LAST_BUILD, { image }, undefined);
    for (const format of known) metrics.set(IMAGE_SIZE, { image, format }, undefined);
  }
}

function report(context: BuilderContext, sources: ReportSources, set: SetGauge): void {
  const { fqdn: host } = context;
  const activity = sources.activity();
  set(BUILDER_WORK, { host, what: 'current_builds' }, activity.builds.length);
  set(BUILDER_WORK, { host, what: 'current_uploads' }, activity.uploads.length);
  set(BUILDER_WORK, { host, what: 'build_workers' }, sources.workers.build);
  set(BUILDER_WORK, { host, what: 'upload_workers' }, sources.workers.upload);
  for (const { image, provider, sentBytes } of activity.uploads) {
    set(UPLOADED_BYTES, { host, image, provider }, sentBytes);
  }
  const config = sources.config();
  if (config !== undefined) reportImages(context, config, activity, set);
}

function reportImages(
  { fqdn: host, store }: BuilderContext,
  config: NodepoolConfig,
  activity: BuilderActivity,
  set: SetGauge,
): void {
  let requests = 0;
  for (const { name: image, abstract, pause } of config.diskImages.values()) {
    if (abstract) continue;
    const requested = store.images.buildRequested(image) && !store.images.isBuilding(image) ? 1 : 0;
    requests += requested;
    set(IMAGE_BUILD_REQUESTS, { image }, requested);
    const paused = pause || store.images.paused(image);
    const building = activity.builds.some((build) => build.image === image);
    set(BUILD_STATE, { host, image }, building ? STATES.building : paused ? STATES.paused : STATES.idle);
    for (const { name: provider, diskImages } of config.providers.values()) {
      const listed = diskImages.get(image);
      if (listed === undefined) continue;
      const uploading = activity.uploads.some((upload) => upload.image === image && upload.provider === provider);
      const state = uploading ? STATES.uploading : listed.pause ? STATES.paused : STATES.idle;
      set(UPLOAD_STATE, { host, image, provider }, state);
    }
  }
  set(BUILD_REQUESTS, {}, requests);
}
