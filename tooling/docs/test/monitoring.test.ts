/** The monitoring examples: a Grafana dashboard, and alert rules with their runbooks. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { parseYaml } from '@nodepool/pyyaml';
import { REPOSITORY } from '../src/repository.js';

const docs = join(REPOSITORY, 'docs');
const read = (name: string): string => readFileSync(join(docs, name), 'utf8');

interface Metric {
  readonly kind: string;
  readonly labels: readonly string[];
}

/** The metrics of the reference, which is generated from the declarations. */
const declared = new Map<string, Metric>(
  read('reference/metrics.md')
    .split('\n')
    .filter((line) => line.startsWith('- `nodepool_'))
    .map((line) => {
      const [, name = '', labels, histogram] = /^- `(\w+)(?:\{([^}]*)\})?`( histogram)?[,:]/.exec(line) ?? [];
      const kind = histogram === undefined ? (name.endsWith('_total') ? 'counter' : 'gauge') : 'histogram';
      return [name, { kind, labels: labels?.split(',') ?? [] }];
    }),
);

/** Labels that Prometheus adds to every metric. */
const ADDED = ['job', 'instance'];
const PARTS_OF_HISTOGRAM = /_(bucket|sum|count)$/;

interface Use {
  readonly name: string;
  readonly metric: Metric | undefined;
  /** Labels that the selector compares. */
  readonly labels: readonly string[];
}

/** Returns the metrics in an expression with the labels of their selectors. */
function metricsIn(expression: string): readonly Use[] {
  return [...expression.matchAll(/\b(nodepool_\w+)(?:\{([^}]*)\})?/g)].map(([, name = '', selector = '']) => {
    const labels = [...selector.matchAll(/(\w+)\s*(?:=|!=|=~|!~)\s*"/g)].map(([, label = '']) => label);
    const whole = declared.get(name);
    const histogram = declared.get(name.replace(PARTS_OF_HISTOGRAM, ''));
    return { name, labels, metric: whole ?? (histogram?.kind === 'histogram' ? histogram : undefined) };
  });
}

function checkExpression(expression: string): void {
  const uses = metricsIn(expression);
  expect(uses.filter(({ metric }) => metric === undefined).map(({ name }) => name)).toEqual([]);
  const known = new Set([...ADDED, 'le', ...uses.flatMap(({ metric }) => metric?.labels ?? [])]);
  for (const { metric, labels, name } of uses) {
    const unknown = labels.filter((label) => ![...ADDED, ...(metric?.labels ?? [])].includes(label));
    expect({ name, unknown }).toEqual({ name, unknown: [] });
    if (metric?.kind === 'histogram') expect(name).toMatch(PARTS_OF_HISTOGRAM);
    if (metric?.kind === 'counter') expect(expression).toMatch(/rate\(|increase\(/);
  }
  const grouped = [...expression.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(', '));
  expect(grouped.filter((label) => !known.has(label))).toEqual([]);
}

it('the metrics reference has entries', () => {
  expect(declared.size).toBeGreaterThan(30);
  expect(declared.get('nodepool_label_nodes')).toEqual({ kind: 'gauge', labels: ['label', 'state'] });
});

describe('the dashboard', () => {
  interface Panel {
    readonly id: number;
    readonly title: string;
    readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
    readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  }
  interface Variable {
    readonly name: string;
    readonly definition?: string;
  }
  const dashboard = JSON.parse(read('examples/grafana-dashboard.json')) as {
    readonly panels: readonly Panel[];
    readonly templating: { readonly list: readonly Variable[] };
  };
  const { panels } = dashboard;
  const targets = panels.flatMap(({ title, targets: own = [] }) => own.map((target) => ({ title, ...target })));

  it.each(targets)('uses only existing metrics and labels: $title', ({ expr, legendFormat }) => {
    checkExpression(expr);
    const known = new Set([...ADDED, ...metricsIn(expr).flatMap(({ metric }) => metric?.labels ?? [])]);
    const shown = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = '']) => label);
    expect(shown.filter((label) => !known.has(label))).toEqual([]);
  });

  it('uses only existing variables', () => {
    const variables = dashboard.templating.list;
    for (const { definition } of variables) {
      if (definition === undefined) continue;
      const [, metric = '', label = ''] = /^label_values\((\w+), (\w+)\)$/.exec(definition) ?? [];
      expect([...ADDED, ...(declared.get(metric)?.labels ?? [])]).toContain(label);
    }
    const names = new Set(['__rate_interval', 'datasource', ...variables.map(({ name }) => name)]);
    const used = [...JSON.stringify(panels).matchAll(/\$\{?(\w+)/g)].map(([, name = '']) => name);
    expect(used.filter((name) => !names.has(name))).toEqual([]);
  });

  it('has panels with unique ids that do not overlap', () => {
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, index) => `${x + (index % w)},${y + Math.floor(index / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
  });

  it('shows every phase, and each program', () => {
    const all = targets.map(({ expr }) => expr).join('\n');
    for (const [name] of [...declared].filter(([metric]) => /phase|process|zookeeper_queue|api_/.test(metric))) {
      expect(all).toContain(name);
    }
  });
});

describe('an alert', () => {
  interface Rule {
    readonly alert: string;
    readonly expr: string;
    readonly labels?: { readonly severity?: string };
    readonly annotations: { readonly summary: string; readonly runbook?: string };
  }
  const { value } = parseYaml(read('examples/alerts.yaml')).document ?? {};
  const { groups } = value as unknown as { readonly groups: readonly { readonly rules: readonly Rule[] }[] };
  const rules = groups.flatMap((group) => group.rules);
  const headings = new Set(
    [...read('runbooks.md').matchAll(/^## (.+)$/gm)].map(([, heading = '']) => heading.toLowerCase()),
  );

  it.each(rules)('uses only existing metrics, and has a severity and a runbook: $alert', (rule) => {
    checkExpression(rule.expr.replace(/\bup\{[^}]*\}/, ''));
    expect(rule.labels?.severity).toMatch(/^(critical|warning)$/);
    const [file, anchor = ''] = rule.annotations.runbook?.split('#') ?? [];
    expect(file).toBe('runbooks.md');
    expect(anchor).toBe(rule.alert.toLowerCase());
    expect(headings).toContain(anchor);
    const shown = [...rule.annotations.summary.matchAll(/\$labels\.(\w+)/g)].map(([, label = '']) => label);
    const by = /\bby \(([^)]*)\)/.exec(rule.expr)?.[1]?.split(', ');
    const metric = metricsIn(rule.expr)[0]?.metric;
    expect(
      shown.filter((label) => ![...(by ?? metric?.labels ?? []), ...(by === undefined ? ADDED : [])].includes(label)),
    ).toEqual([]);
  });

  it('exists for each runbook', () => {
    expect([...headings].sort()).toEqual(rules.map(({ alert }) => alert.toLowerCase()).sort());
  });
});
