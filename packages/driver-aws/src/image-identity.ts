/**
 * Identity of images, snapshots and objects. Tags can be copied, so each resource also has a property that a copy
 * cannot share: an image its name, a snapshot its id, an object its key.
 */

import { IMAGE_TAGS, isImageOfUpload, type ImageTags } from '@nodepool/core';
import type { Image, Snapshot } from '@aws-sdk/client-ec2';
import { tagsIn } from './client/ec2.js';
import type { Tags } from './identity.js';

/** Tag with the name of an image in EC2, which a copy cannot share. */
export const IMAGE_NAME_TAG = 'nodepool_ami_name';
/** Tag with the name that the builder gave to an image. */
export const EXTERNAL_NAME_TAG = 'nodepool_external_name';
/** Tag with the id of a snapshot, which a copy cannot share. Snapshots that EC2 tags at their creation lack it. */
export const SNAPSHOT_ID_TAG = 'nodepool_snapshot_id';
/** Prefix of the keys of objects. */
export const OBJECT_PREFIX = 'nodepool/';

/** Tags of a build at a provider. Uploads of the same build differ in the upload id only. */
const BUILD_TAGS = IMAGE_TAGS.filter((tag) => tag !== 'nodepool_upload_id');

export function hasImageTags(tags: Tags): tags is Tags & ImageTags {
  return IMAGE_TAGS.every((tag) => tag in tags);
}

/** Returns true if the tags are those of an upload of the same build to the same provider, in the same format. */
export function isSameBuild(tags: Tags, upload: ImageTags): boolean {
  return BUILD_TAGS.every((tag) => tags[tag] === upload[tag]);
}

export function isSameUpload(tags: Tags, other: Tags): boolean {
  return hasImageTags(other) && isImageOfUpload(tags, other);
}

/** Returns filters for the resources of all uploads of a build, of one provider or of all. */
export function buildFilters(
  tags: ImageTags,
  providers: 'same provider' | 'all providers',
): { Name: string; Values: string[] }[] {
  const names = BUILD_TAGS.filter((tag) => providers === 'same provider' || tag !== 'nodepool_provider_name');
  return names.map((tag) => ({ Name: `tag:${tag}`, Values: [tags[tag]] }));
}

/**
 * Returns the key of the object of a build. An upload that follows an interrupted one has the same key, so it finds the
 * parts that exist.
 */
export function objectKey(tags: ImageTags): string {
  const { nodepool_build_id: build, nodepool_image_format: format } = tags;
  const folders = [tags.nodepool_installation, tags.nodepool_provider_name, tags.nodepool_image_name];
  return `${OBJECT_PREFIX}${[...folders, `${build}.${format}`].map(encodeURIComponent).join('/')}`;
}

/** Returns the tags of the build that a key names; undefined for the key of another program. */
export function tagsOfKey(key: string): Tags | undefined {
  const match = /^nodepool\/([^/]+)\/([^/]+)\/([^/]+)\/([0-9a-f]+)\.([^/]+)$/.exec(key);
  if (match === null) return undefined;
  try {
    const [installation = '', provider = '', image = '', build = '', format = ''] = match
      .slice(1)
      .map(decodeURIComponent);
    return {
      nodepool_installation: installation,
      nodepool_provider_name: provider,
      nodepool_image_name: image,
      nodepool_build_id: build,
      nodepool_image_format: format,
    };
  } catch {
    // It is not encoded as the keys of this driver.
    return undefined;
  }
}

/** Returns true if the image has another name than the one in its tags: it is a copy by another person. */
export function isCopiedImage({ Name, Tags: tags }: Image): boolean {
  const own = tagsIn(tags)[IMAGE_NAME_TAG];
  return own !== undefined && own !== Name;
}

/**
 * Returns true if a snapshot is a copy of that of an upload. Snapshots without their id in the tags are those of EBS
 * direct, which are described by the name of their image, and those of copied images, which EC2 describes.
 */
export function isCopiedSnapshot({ SnapshotId, Description = '', Tags: tags }: Snapshot): boolean {
  const { [SNAPSHOT_ID_TAG]: own, [IMAGE_NAME_TAG]: name } = tagsIn(tags);
  if (own !== undefined) return own !== SnapshotId;
  return name !== undefined && Description !== name && !/^Copied for DestinationAmi ami-\w+ from /.test(Description);
}

/** Returns the description that EC2 gives to the snapshot of an import. */
export function descriptionOfImport(task: string): string {
  return `Created by AWS-VMImport service for ${task}`;
}
