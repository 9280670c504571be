/** Copies an image from another region, where a provider has uploaded the same build. */

import { sleep } from '@nodepool/core';
import type { Image } from '@aws-sdk/client-ec2';
import { toTags } from './client/ec2.js';
import { buildFilters, isCopiedImage } from './image-identity.js';
import type { Upload } from './image-upload.js';

/** Interval between searches for the image in the source region (ms). */
const SEARCH_INTERVAL_MS = 30_000;

/**
 * Resolves with the id of the copy, which may not be available yet. Resolves with undefined if no region is configured,
 * or if the region has no image of the build within the time limit: a builder uploads a new build to all regions at the
 * same time.
 */
export async function copyImage(upload: Upload): Promise<string | undefined> {
  const { session, call, name, tags, token, retries, request, size } = upload;
  const { region: own, imageSourceRegion: region, imageSourceTimeoutMs: limitMs } = session.config;
  if (region === undefined || region === own) return undefined;
  const until = session.clock.monotonic() + limitMs;
  for (;;) {
    const source = await findSource(upload, region);
    if (source?.ImageId !== undefined) {
      const Tags = toTags(tags);
      const TagSpecifications = (['image', 'snapshot'] as const).map((ResourceType) => ({ ResourceType, Tags }));
      const from = { SourceImageId: source.ImageId, SourceRegion: region };
      call.log.info('Copying the image of another region', { image: name, region, source: source.ImageId });
      const input = { Name: name, ...from, ClientToken: token, TagSpecifications };
      return retries(() => session.imageCalls.copyImage(input, call));
    }
    if (session.clock.monotonic() + SEARCH_INTERVAL_MS > until) break;
    request.progress(0, size);
    await sleep(session.clock, SEARCH_INTERVAL_MS, call.signal);
  }
  call.log.info('The source region has no image of this build; uploading the file', { image: name, region });
  return undefined;
}

async function findSource({ session, call, request, retries }: Upload, region: string): Promise<Image | undefined> {
  const filters = buildFilters(request.tags, 'all providers');
  const images = await retries(() => session.ec2.images({ owners: ['self'], filters }, call, region));
  return images.find((image) => image.State === 'available' && !isCopiedImage(image));
}
