/** Which resources were made for image uploads that are gone. */

import { IMAGES_ROOT, uploadPath, type Resource, type Store } from '@nodepool/core';
import { isZooKeeperError } from '@nodepool/zookeeper';

/** Names as builders make them; others have been made up, and are not looked up. */
const BUILD_ID = /^[0-9a-f]+$/;
const UPLOAD_ID = /^[0-9]{10}$/;

/** Those of these resources whose upload a fresh read does not know. An upload is known by its build and its own id. */
export async function unknownUploads(
  store: Store,
  provider: string,
  resources: readonly Resource[],
  signal: AbortSignal,
): Promise<readonly Resource[]> {
  if (resources.length === 0) return [];
  const cached = new Set<string>();
  for (const { build, id } of store.images.uploads({ provider })) cached.add(`${build}/${id}`);
  const candidates = resources.filter(({ tags }) => {
    const { nodepool_build_id: build, nodepool_upload_id: upload } = tags;
    if (build === undefined || !BUILD_ID.test(build) || upload === undefined || !UPLOAD_ID.test(upload)) return false;
    return !cached.has(`${build}/${upload}`);
  });
  if (candidates.length === 0) return [];
  const images = await imageNames(store, signal);
  const unknown: Resource[] = [];
  for (const resource of candidates) {
    const { nodepool_build_id: build = '', nodepool_upload_id: upload = '' } = resource.tags;
    const paths = images.map((image) => uploadPath(image, build, provider, upload));
    const found = await Promise.all(paths.map((path) => store.zooKeeper.exists(path, { signal })));
    if (found.every((stat) => stat === undefined)) unknown.push(resource);
  }
  return unknown;
}

async function imageNames(store: Store, signal: AbortSignal): Promise<readonly string[]> {
  try {
    return (await store.zooKeeper.children(IMAGES_ROOT, { signal })).children;
  } catch (error) {
    if (isZooKeeperError(error, 'no-node')) return [];
    throw error;
  }
}
