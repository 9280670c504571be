import type { ImageBuild, ImageUpload } from '@nodepool/core';

/** The identity of a build, part of every `ImageBuild`. */
export type BuildRef = Pick<ImageBuild, 'image' | 'id'>;

/** The identity of an upload, part of every `ImageUpload`. */
export type UploadRef = Pick<ImageUpload, 'image' | 'build' | 'provider' | 'id'>;

/** A build and a provider to upload it to, part of every `ImageUpload`. */
export type UploadPlace = Pick<ImageUpload, 'image' | 'build' | 'provider'>;
