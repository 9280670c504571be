/** The list of served labels. */

import type { ComponentStore } from '../api.js';
import { makeRecordList, type ColumnChoice, type ListColumn, type RecordList } from './record-list.js';

const LABEL_COLUMNS: readonly ListColumn<string>[] = [{ field: 'label', header: 'Label', value: (label) => label }];

/** Lists the labels of all registered pools, by name. Throws `UnknownFieldError`. */
export function labelList(
  components: Pick<ComponentStore, 'pools'>,
  options: { readonly columns: ColumnChoice },
): RecordList {
  const labels = new Set<string>();
  for (const pool of components.pools()) for (const label of pool.supported_labels) labels.add(label);
  return makeRecordList(LABEL_COLUMNS, options.columns, [...labels].sort());
}
