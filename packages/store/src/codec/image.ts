/** Codecs of image builds and uploads, below `/nodepool/images/<image>/builds`. */

import { parseObject, recordCodec, type Codec } from './codec.js';
import { review } from './image-review.js';
import { externalId, isText, number, oneOf, text, texts, unknownState, type RawField } from './fields.js';
import type { ImageBuild, ImageBuildData, ImageBuildFailure, ImageUpload, ImageUploadData } from '@nodepool/core';
import { BUILD_STATES, UPLOAD_STATES } from '@nodepool/core';

type BuildId = Pick<ImageBuild, 'image' | 'id'>;
type UploadId = Pick<ImageUpload, 'image' | 'build' | 'provider' | 'id'>;

export const buildCodec: Codec<BuildId, ImageBuildData> = recordCodec<BuildId, ImageBuildData>({
  fields: {
    state: true,
    state_time: true,
    builder: true,
    builder_id: true,
    formats: true,
    username: true,
    python_path: true,
    shell_type: true,
    boot_tested: true,
    source: true,
  },

  read(raw, { image, id }, changedAt): ImageBuild | string {
    const state = oneOf(raw.state, BUILD_STATES);
    const source = text(raw.source);
    if (state === undefined) return unknownState(raw.state, BUILD_STATES);
    return {
      image,
      id,
      state,
      state_time: number(raw.state_time) ?? changedAt,
      builder: text(raw.builder),
      builder_id: text(raw.builder_id),
      formats: formats(raw.formats),
      username: text(raw.username),
      python_path: text(raw.python_path),
      shell_type: text(raw.shell_type),
      ...(typeof raw.boot_tested === 'boolean' ? { boot_tested: raw.boot_tested } : {}),
      ...(source === null ? {} : { source }),
    };
  },

  // Other programs do not know these fields.
  omitted: ['boot_tested', 'source'],

  print: {
    formats: (field) => JSON.stringify(Array.isArray(field) ? field.filter(isText).sort().join(',') : field),
  },
});

export const uploadCodec: Codec<UploadId, ImageUploadData> = recordCodec<UploadId, ImageUploadData>({
  fields: {
    state: true,
    state_time: true,
    external_id: true,
    external_name: true,
    format: true,
    username: true,
    python_path: true,
    shell_type: true,
    progress: true,
    listed: true,
    review: true,
  },

  read(raw, { image, build, provider, id }, changedAt): ImageUpload | string {
    const state = oneOf(raw.state, UPLOAD_STATES);
    if (state === undefined) return unknownState(raw.state, UPLOAD_STATES);
    const progress = number(raw.progress);
    const reviewed = review(raw.review);
    return {
      image,
      build,
      provider,
      id,
      state,
      state_time: number(raw.state_time) ?? changedAt,
      external_id: externalId(raw.external_id),
      external_name: text(raw.external_name),
      format: text(raw.format),
      username: text(raw.username),
      python_path: text(raw.python_path),
      shell_type: text(raw.shell_type),
      ...(progress === null ? {} : { progress }),
      ...(typeof raw.listed === 'boolean' ? { listed: raw.listed } : {}),
      ...(reviewed === null ? {} : { review: reviewed }),
    };
  },

  // Other programs do not know these fields.
  omitted: ['progress', 'listed', 'review'],
});

/** Returns the last failed build of an image, or the reason why it cannot be read. */
export function decodeBuildFailure(data: Uint8Array, changedAt: number): ImageBuildFailure | string {
  const parsed = parseObject(data);
  if (typeof parsed === 'string') return parsed;
  const { time, build, builder, reason, message, log } = parsed;
  return {
    time: number(time) ?? changedAt,
    build: text(build),
    builder: text(builder),
    reason: text(reason) ?? '',
    message: text(message) ?? '',
    log: text(log),
  };
}

function formats(raw: RawField): readonly string[] {
  const names = typeof raw === 'string' ? raw.split(',') : texts(raw);
  return names
    .map((name) => name.trim())
    .filter((name) => name !== '')
    .sort();
}
