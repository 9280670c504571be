/** Objects, unfinished uploads to the bucket, and imports, which a crashed builder may have left. */

import { ConflictError, type Call, type ExternalId, type Resource } from '@nodepool/core';
import { hasImageTags, isSameBuild, OBJECT_PREFIX, tagsOfKey } from './image-identity.js';
import { importTasks } from './image-imports.js';
import type { ProviderSession } from './session.js';

/** Lists them. Omits those of a kind that cannot be listed, so that other leaks are found. */
export async function listImageLeftovers(session: ProviderSession, call: Call): Promise<readonly Resource[]> {
  const { bucket } = session.config;
  if (bucket === undefined) return [];
  const lists = await Promise.all([
    unlessRefused('objects', call, () => objects(session, bucket, call)),
    unlessRefused('unfinished uploads', call, () => multiparts(session, bucket, call)),
    unlessRefused('imports', call, () => imports(session, call)),
  ]);
  return lists.flat();
}

/** Deletes the parts of an unfinished upload. */
export async function deleteMultipart(
  { config, imageCalls }: ProviderSession,
  id: ExternalId,
  call: Call,
): Promise<void> {
  const { key, upload } = typeof id === 'string' ? {} : id;
  if (typeof key !== 'string' || typeof upload !== 'string') {
    throw new ConflictError(`multipart-upload ${JSON.stringify(id)} is none of AWS`);
  }
  await imageCalls.abortUpload({ Bucket: config.bucket ?? '', Key: key }, upload, call);
}

async function unlessRefused(
  what: string,
  call: Call,
  list: () => Promise<readonly Resource[]>,
): Promise<readonly Resource[]> {
  try {
    return await list();
  } catch (error) {
    if (call.signal.aborted) throw error;
    call.log.warn('Could not list remains of uploads; cleanup skips them', { kind: what, error });
    return [];
  }
}

/** Returns the objects of uploads. A copy of an object has its tags, but another key. */
async function objects(
  { imageCalls, config }: ProviderSession,
  Bucket: string,
  call: Call,
): Promise<readonly Resource[]> {
  const found: Resource[] = [];
  for (const { key: Key } of await imageCalls.listObjects(Bucket, OBJECT_PREFIX, call)) {
    const named = tagsOfKey(Key);
    if (named?.['nodepool_provider_name'] !== config.name) continue;
    const tags = await imageCalls.objectTags({ Bucket, Key }, call);
    if (hasImageTags(tags) && isSameBuild(named, tags))
      found.push({ kind: 'object', externalId: Key, name: Key, tags });
  }
  return found;
}

/** Returns the unfinished uploads. S3 does not show their tags; the key names the build, whose uploads can use them. */
async function multiparts({ imageCalls }: ProviderSession, Bucket: string, call: Call): Promise<readonly Resource[]> {
  const unfinished = await imageCalls.unfinishedUploads(Bucket, OBJECT_PREFIX, call);
  return unfinished.flatMap(({ Key: key = '', UploadId: upload }) => {
    const tags = tagsOfKey(key);
    if (tags === undefined || upload === undefined) return [];
    return [{ kind: 'multipart-upload', externalId: { key, upload }, name: key, tags }];
  });
}

/** Returns the imports in progress. */
async function imports(session: ProviderSession, call: Call): Promise<readonly Resource[]> {
  const tasks = await importTasks(session, call);
  return tasks
    .filter(({ isActive }) => isActive)
    .map(({ task, tags }) => ({ kind: 'import', externalId: task, name: tags['Name'] ?? task, tags }));
}
