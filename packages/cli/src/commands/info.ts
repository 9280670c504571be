/** `nodepool info PROVIDER`: the records of a provider in ZooKeeper. */

import { makeRecordList, toJsonObjects, toTable, type ListColumn, type NodeEntry } from '@nodepool/store';
import type { ListFormat, StoreContext } from '../command-context.js';
import { checkProvider } from '../image-names.js';

interface UploadedBuild {
  readonly image: string;
  readonly build: string;
  readonly uploads: readonly string[];
}

const UPLOAD_COLUMNS: readonly ListColumn<UploadedBuild>[] = [
  { field: 'image', header: 'Image Name', value: ({ image }) => image },
  { field: 'build', header: 'Build ID', value: ({ build }) => build },
  { field: 'uploads', header: 'Upload IDs', value: ({ uploads }) => uploads },
];

const NODE_COLUMNS: readonly ListColumn<NodeEntry>[] = [
  { field: 'id', header: 'ID', value: ({ id }) => id },
  { field: 'server_id', header: 'Server ID', value: ({ node }) => node.external_id },
  { field: 'state', header: 'State', detail: true, value: ({ node }) => node.state },
];

/** Prints the records. Rejects with `RefusedError` if the provider is unknown. */
export function info(context: StoreContext, provider: string, options: { readonly format: ListFormat }): void {
  checkProvider(context, provider);
  const { store, out } = context;
  const uploads = makeRecordList(UPLOAD_COLUMNS, 'all', uploadedBuilds(context, provider));
  const columns = options.format === 'json' ? 'all' : 'short';
  const nodes = makeRecordList(NODE_COLUMNS, columns, [...store.nodes.ofProvider(provider)]);
  if (options.format === 'json') {
    const all = { provider, uploads: toJsonObjects(uploads), nodes: toJsonObjects(nodes) };
    out.print(JSON.stringify(all, undefined, 2));
    return;
  }
  out.print(`ZooKeeper data for provider ${provider}\n\nImage data:\n${toTable(uploads)}\n\nNodes:\n${toTable(nodes)}`);
}

function uploadedBuilds({ store }: StoreContext, provider: string): readonly UploadedBuild[] {
  const builds = new Map<string, { image: string; build: string; uploads: string[] }>();
  for (const { image, build, id } of store.images.uploads({ provider })) {
    const key = `${image}/${build}`;
    const known = builds.get(key) ?? { image, build, uploads: [] };
    known.uploads.push(id);
    builds.set(key, known);
  }
  return [...builds.values()];
}
