import type { ComponentStore } from '../components/component-store.js';
import { createRecordList, type ColumnChoice, type ListColumn, type RecordList } from './record-list.js';

interface ServedLabel {
  readonly label: string;
  /** Names of the providers, sorted. */
  readonly providers: readonly string[];
}

const LABEL_COLUMNS: readonly ListColumn<ServedLabel>[] = [
  { field: 'label', header: 'Label', value: ({ label }) => label },
  { field: 'provider', header: 'Providers', detail: true, value: ({ providers }) => providers },
];

/** Lists the labels of all registered pools, by name. Throws `UnknownFieldError`. */
export function labelList(
  components: Pick<ComponentStore, 'pools'>,
  options: { readonly columns: ColumnChoice },
): RecordList {
  const labels = new Map<string, Set<string>>();
  for (const pool of components.pools()) {
    for (const label of pool.supported_labels) {
      labels.set(label, (labels.get(label) ?? new Set()).add(pool.provider_name));
    }
  }
  const rows = [...labels].map(([label, providers]) => ({ label, providers: [...providers].sort() }));
  rows.sort((a, b) => (a.label < b.label ? -1 : a.label > b.label ? 1 : 0));
  return createRecordList(LABEL_COLUMNS, options.columns, rows);
}
