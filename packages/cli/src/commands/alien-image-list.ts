/** `nodepool alien-image-list [PROVIDER]`: images in clouds that have Nodepool's tags but no record. */

import { externalIdKey, isError, type ListedImage, type ProviderConfig } from '@nodepool/core';
import { createRecordList, type ListColumn } from '@nodepool/store';
import { CommandError, type StoreContext } from '../command-context.js';
import { checkConfigured, checkProvider } from '../image-names.js';
import { withStartedProvider } from '../started-provider.js';
import { printSelected, type ListOptions } from '../lists/list-command.js';

const TIMEOUT_MS = 120_000;

interface AlienImage {
  readonly provider: string;
  readonly image: ListedImage;
}

const COLUMNS: readonly ListColumn<AlienImage>[] = [
  { field: 'provider', header: 'Provider', value: ({ provider }) => provider },
  { field: 'name', header: 'Name', value: ({ image }) => image.name },
  { field: 'id', header: 'Image ID', value: ({ image }) => image.externalId },
];

/** Queries all clouds in parallel. Rejects with `CommandError` if one query failed, after the others were printed. */
export async function alienImageList(
  context: StoreContext,
  only: string | undefined,
  options: ListOptions,
): Promise<void> {
  const { config, out } = context;
  if (only !== undefined) {
    checkProvider(context, only);
    checkConfigured(context, only);
  }
  const isWanted = (name: string): boolean => only === undefined || only === name;
  const failures: string[] = [];
  for (const [name, { reason }] of config.brokenProviders) {
    if (isWanted(name)) failures.push(`provider ${name}: its driver cannot be used: ${reason}`);
  }
  const wanted = [...config.providers.values()].filter(({ name }) => isWanted(name));
  const found = await Promise.all(
    wanted.map(async (provider) => {
      try {
        return await aliensOf(context, provider);
      } catch (error) {
        context.interrupted.throwIfAborted();
        failures.push(`provider ${provider.name}: ${isError(error) ? error.message : String(error)}`);
        return [];
      }
    }),
  );
  const list = createRecordList(COLUMNS, 'all', found.flat());
  printSelected(out, list, { name: ['provider', 'id'], filters: { provider: 'provider' } }, options);
  if (failures.length > 0) throw new CommandError(`the list is not complete:\n  ${failures.join('\n  ')}`);
}

async function aliensOf(context: StoreContext, providerConfig: ProviderConfig): Promise<readonly AlienImage[]> {
  const { config, store } = context;
  const { name } = providerConfig;
  const provider = config.loadedDrivers.get(providerConfig.driver)?.getProvider(providerConfig);
  const images = provider?.images;
  if (provider === undefined || images === undefined) return [];
  const listed = await withStartedProvider(context, provider, TIMEOUT_MS, (call) => images.listImages(call));
  // Read after the listing, so that uploads created meanwhile are known.
  const uploads = [...store.images.uploads({ provider: name })];
  const ids = new Set(uploads.flatMap(({ external_id: id }) => (id === null ? [] : [externalIdKey(id)])));
  const records = new Set(uploads.map(({ build, id }) => `${build}/${id}`));
  return listed
    .filter(({ externalId, tags }) => {
      if (tags['nodepool_provider_name'] !== name || ids.has(externalIdKey(externalId))) return false;
      // Images of another installation have their records in that installation.
      if ((tags['nodepool_installation'] ?? store.installation.id) !== store.installation.id) return false;
      return !records.has(`${tags['nodepool_build_id']}/${tags['nodepool_upload_id']}`);
    })
    .map((image) => ({ provider: name, image }));
}
