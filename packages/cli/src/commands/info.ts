/** `nodepool info PROVIDER`: the records of a provider in ZooKeeper. */

import { makeRecordList, printable, toJsonObjects, type ListColumn, type NodeEntry } from '@nodepool/store';
import type { ListFormat, StoreContext } from '../command-context.js';
import { PLAIN } from '../display.js';
import { checkProvider } from '../image-names.js';
import { formatData, formatList } from '../lists/format-list.js';

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
  const { format } = options;
  const columns = format === 'pretty' ? 'short' : 'all';
  const nodes = makeRecordList(NODE_COLUMNS, columns, [...store.nodes.ofProvider(provider)]);
  if (format === 'json' || format === 'yaml') {
    const all = { provider, uploads: toJsonObjects(uploads), nodes: toJsonObjects(nodes) };
    out.print(formatData(all, format));
    return;
  }
  const display = out.display?.() ?? PLAIN;
  const [images, instances] = [uploads, nodes].map((list) => formatList(list, format, display));
  out.print(`ZooKeeper data for provider ${printable(provider)}\n\nImage data:\n${images}\n\nNodes:\n${instances}`);
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
