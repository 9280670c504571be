/** The cost of nodes: present cost per hour and the cost of the last day, by label and by tenant and project. */

import type { CostRow, CostStatus } from '../client/model.js';
import type { NodeUse } from '../metrics/cost-meter.js';
import { shortened, type Observed } from './sources.js';
import { SHORT } from './texts.js';

/** Number of rows of a table. */
const MAX_ROWS = 20;

interface Part {
  readonly use: NodeUse;
  readonly currency: string;
  readonly perHour: number;
  readonly day: number;
}

/** Returns null if no node of the last day had a price. */
export function costStatus({ status }: Observed): CostStatus | null {
  const { history, costs } = status.recorder;
  const labels = new Rows();
  const owners = new Rows();
  const add = (group: ReturnType<typeof costs.present>[number], perHour: number, day: number): void => {
    const { use, currency, label, provider, tenant, project } = group;
    const part = { use, currency, perHour, day };
    labels.add([label, provider], part);
    if (use !== 'idle') owners.add([tenant, project], part);
  };
  for (const group of costs.present()) add(group, group.perHour, 0);
  for (const { costs: ofStep } of history.buckets()) {
    for (const group of ofStep) add({ ...group, perHour: 0 }, 0, group.amount);
  }
  if (labels.isEmpty) return null;
  return { labels: labels.greatest(), owners: owners.greatest() };
}

type Sums = { -readonly [K in keyof CostRow]: CostRow[K] };

class Rows {
  private readonly rows = new Map<string, Sums>();

  get isEmpty(): boolean {
    return this.rows.size === 0;
  }

  add([name, of]: readonly [name: string, of: string], { use, currency, perHour, day }: Part): void {
    const key = JSON.stringify([name, of, currency]);
    let row = this.rows.get(key);
    if (row === undefined) {
      row = {
        name: shortened(name, SHORT),
        of: shortened(of, SHORT),
        currency,
        inUse: 0,
        idle: 0,
        overhead: 0,
        day: 0,
      };
      this.rows.set(key, row);
    }
    row[use === 'in-use' ? 'inUse' : use] += perHour;
    row.day += day;
  }

  greatest(): CostRow[] {
    return [...this.rows.values()].sort((a, b) => b.day - a.day || b.inUse - a.inUse).slice(0, MAX_ROWS);
  }
}
