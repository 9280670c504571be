/** Finds resources of image uploads that have no record. */

import { uploadPath, type Store } from '@nodepool/store';
import type { Resource } from '@nodepool/core';

/** Formats of the ids and names that builders write; resources with tags in other formats are skipped. */
const BUILD_ID = /^[0-9a-f]+$/;
const UPLOAD_ID = /^[0-9]{10}$/;
const IMAGE_NAME = /^(?!\.{1,2}$)[^/\0]+$/;

/** Returns the resources whose upload a fresh read does not find. Resources without an image name are skipped. */
export async function unknownUploads(
  store: Store,
  provider: string,
  resources: readonly Resource[],
  signal: AbortSignal,
): Promise<readonly Resource[]> {
  const cached = new Set<string>();
  if (resources.length > 0) {
    for (const { image, build, id } of store.images.uploads({ provider }))
      cached.add(uploadPath(image, build, provider, id));
  }
  const unknown: Resource[] = [];
  for (const resource of resources) {
    const path = pathOf(resource, provider);
    if (path === undefined || cached.has(path)) continue;
    if ((await store.zooKeeper.exists(path, { signal })) === undefined) unknown.push(resource);
  }
  return unknown;
}

/** Returns the path of the upload's record; undefined if the tags have another format. */
function pathOf({ tags }: Resource, provider: string): string | undefined {
  const { nodepool_image_name: image, nodepool_build_id: build, nodepool_upload_id: upload } = tags;
  if (image === undefined || !IMAGE_NAME.test(image)) return undefined;
  if (build === undefined || !BUILD_ID.test(build) || upload === undefined || !UPLOAD_ID.test(upload)) return undefined;
  return uploadPath(image, build, provider, upload);
}
