/** `nodepool info PROVIDER`: the records of a provider in ZooKeeper. */

import type { ListColumn, MachineOutage, NodeEntry } from '@nodepool/store';
import { printable } from '@nodepool/core';
import { createRecordList, toJsonObjects } from '@nodepool/store';
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

/** A machine that a launcher cannot use at the moment. */
interface ReportedOutage extends MachineOutage {
  readonly pool: string;
  readonly launcher: string;
}

const OUTAGE_COLUMNS: readonly ListColumn<ReportedOutage>[] = [
  { field: 'machine', header: 'Machine', value: ({ machine }) => machine },
  { field: 'pool', header: 'Pool', value: ({ pool }) => pool },
  { field: 'labels', header: 'Labels', value: ({ labels }) => labels },
  { field: 'slots', header: 'Slots', value: ({ slots }) => slots },
  { field: 'launcher', header: 'Launcher', value: ({ launcher }) => launcher },
  { field: 'since', header: 'Since', value: ({ since }) => new Date(since * 1000).toISOString() },
  { field: 'reason', header: 'Reason', value: ({ reason }) => reason },
];

/** Prints the records. Rejects with `CommandError` if the provider is unknown. */
export function info(context: StoreContext, provider: string, options: { readonly format: ListFormat }): void {
  checkProvider(context, provider);
  const { store, out } = context;
  if (options.format === 'name') {
    out.print(printable(provider));
    return;
  }
  const uploads = createRecordList(UPLOAD_COLUMNS, 'all', uploadedBuilds(context, provider));
  const down = outagesOf(context, provider);
  const outages = createRecordList(OUTAGE_COLUMNS, 'all', down);
  const { format } = options;
  const columns = format === 'pretty' ? 'short' : 'all';
  const nodes = createRecordList(NODE_COLUMNS, columns, [...store.nodes.ofProvider(provider)]);
  if (format === 'json' || format === 'yaml') {
    const all = {
      provider,
      uploads: toJsonObjects(uploads),
      nodes: toJsonObjects(nodes),
      out_of_service: toJsonObjects(outages),
    };
    out.print(formatData(all, format));
    return;
  }
  const display = out.display?.() ?? PLAIN;
  const [images, instances] = [uploads, nodes].map((list) => formatList(list, format, display));
  out.print(`ZooKeeper data for provider ${printable(provider)}\n\nImage data:\n${images}\n\nNodes:\n${instances}`);
  if (down.length === 0) return;
  out.print(`\nMachines out of service:\n${formatList(outages, format, display)}`);
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

/** Returns the machines that launchers report as out of service. */
function outagesOf({ store }: StoreContext, provider: string): ReportedOutage[] {
  return [...store.components.pools()]
    .filter((pool) => pool.provider_name === provider)
    .flatMap(({ name, hostname, out_of_service: outages = [] }) =>
      outages.map((outage) => ({ ...outage, pool: name, launcher: hostname })),
    );
}
