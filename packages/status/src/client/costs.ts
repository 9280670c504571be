/** The tables of the cost of nodes, in the overview. */

import type { CostRow, CostStatus } from './model.js';
import { table, type Column } from './table.js';
import { section } from './widgets.js';

/** Returns nothing if no price is configured. */
export function costSections(costs: CostStatus | null): readonly HTMLElement[] {
  if (costs === null) return [];
  return [
    section(
      'Cost',
      'per hour now, and of the last day',
      costTable('Cost by label', ['Label', 'Provider'], costs.labels),
    ),
    section('Cost of tenants', 'without idle nodes', costTable('Cost by tenant', ['Tenant', 'Project'], costs.owners)),
  ];
}

function costTable(caption: string, [name, of]: readonly [string, string], rows: readonly CostRow[]): HTMLElement {
  const amount = (title: string, value: (row: CostRow) => number): Column<CostRow> => ({
    title,
    numeric: true,
    cell: (row) => [money(value(row), row.currency)],
  });
  return table({
    caption,
    columns: [
      { title: name, cell: (row) => [row.name === '' ? 'none' : row.name] },
      { title: of, cell: (row) => [row.of] },
      amount('In use', ({ inUse }) => inUse),
      amount('Idle', ({ idle }) => idle),
      amount('Launches and deletions', ({ overhead }) => overhead),
      amount('Last day', ({ day }) => day),
    ],
    rows,
    key: (row) => `${row.name} ${row.of} ${row.currency}`,
  });
}

/** Returns e.g. `1.25 EUR`; small amounts have more digits. */
function money(amount: number, currency: string): string {
  const digits = amount === 0 || amount >= 1 ? 2 : 4;
  return `${amount.toFixed(digits)} ${currency}`;
}
