/**
 * Replaces images that no longer exist in the cloud. A refused launch alone proves nothing, so the upload is marked
 * only if the list of images lacks it, too. Then all launchers use another upload, and the builder uploads the image
 * again.
 */

import type { DriverError, DriverErrorCode, ImageUpload, Logger, NodeRequest, Provider } from '@nodepool/core';
import { externalIdKey, isUsableUpload, toDriverError, driverCall, uploadToTest } from '@nodepool/core';
import type { LauncherContext } from '../context.js';
import { choicePolicy } from '../pool/pool-labels.js';

const LIST_TIMEOUT_MS = 120_000;

/** Error codes of launches whose image does not exist. */
const REFUSALS: ReadonlySet<DriverErrorCode> = new Set(['not-found', 'configuration']);

interface RefusedLaunch {
  readonly request: NodeRequest;
  readonly provider: Provider;
  readonly signal: AbortSignal;
  readonly log: Logger;
}

/** Returns another upload if the launch failed because the image of this upload no longer exists in the cloud. */
export async function replacementFor(
  context: LauncherContext,
  job: RefusedLaunch,
  upload: ImageUpload | undefined,
  failure: DriverError,
): Promise<ImageUpload | undefined> {
  if (upload === undefined || !REFUSALS.has(failure.code)) return undefined;
  if (!(await isGone(context, job, upload, failure))) return undefined;
  return otherUpload(context, job, upload);
}

/**
 * Returns the upload that needs no trial, if it is another one. A launch test demands its upload, so it has no other.
 */
export function otherUpload(
  { store }: LauncherContext,
  { provider, request }: Pick<RefusedLaunch, 'provider' | 'request'>,
  upload: ImageUpload,
): ImageUpload | undefined {
  if (uploadToTest(request) !== undefined) return undefined;
  const next = store.images.choose(upload.image, upload.provider, choicePolicy(provider, upload.image))?.upload;
  return next?.build === upload.build && next.id === upload.id ? undefined : next;
}

async function isGone(
  context: LauncherContext,
  job: RefusedLaunch,
  upload: ImageUpload,
  { code }: DriverError,
): Promise<boolean> {
  const { images } = context.store;
  const known = images.upload(upload);
  if (known === undefined || !isUsableUpload(known)) return true;
  // A configuration error has many causes, and an image that an operator shared by hand may never be in the list.
  if (code === 'configuration' && known.listed !== true) return false;
  if (!(await isUnlisted(context, job, upload))) return false;
  const { image, build, id, external_id: externalId } = upload;
  const about = { image, build_id: build, upload_id: id, external_id: externalId };
  job.log.warn('The image of an upload is missing in the cloud; the next newest is used', about);
  const handle = await images.tryLockUpload(upload, { change: { listed: false }, signal: job.signal });
  await handle?.lock.release();
  return true;
}

/** Returns true if a complete list of the cloud's images lacks the upload. */
async function isUnlisted(
  { clock }: LauncherContext,
  { provider, signal, log }: RefusedLaunch,
  { external_id: externalId }: ImageUpload,
): Promise<boolean> {
  const { images } = provider;
  if (images === undefined || externalId === null) return false;
  const call = { signal, deadline: clock.monotonic() + LIST_TIMEOUT_MS, log };
  try {
    const list = await driverCall(clock, 'the list of images', call, (bounded) => images.listImages(bounded));
    return !list.some((listed) => externalIdKey(listed.externalId) === externalIdKey(externalId));
  } catch (error) {
    log.info('Failed to list the images after a refused launch', { error: toDriverError(error) });
    return false;
  }
}
