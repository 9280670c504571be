/** Draws idle node hours against mean waits as SVG, both on logarithmic scales. */

import type { PolicyResults } from './results.js';

const [WIDTH, HEIGHT] = [720, 460];
const AREA = { left: 80, right: 24, top: 48, bottom: 56 } as const;
const COLOURS: Readonly<Record<string, string>> = {
  constant: 'a',
  schedule: 'b',
  spare: 'c',
  forecast: 'd',
};
const STYLE = `.ground{fill:#fff}text{font:13px system-ui,sans-serif;fill:#1f2328}.title{font-weight:600;font-size:15px}
.grid{stroke:#d5dbe1;stroke-width:1}.a{stroke:#57626d;fill:#57626d}.b{stroke:#2f7d4f;fill:#2f7d4f}
.c{stroke:#a5632a;fill:#a5632a}.d{stroke:#1f5fbf;fill:#1f5fbf}.curve{fill:none;stroke-width:2}
@media (prefers-color-scheme:dark){.ground{fill:#14181c}text{fill:#d6dbe1}.grid{stroke:#333b43}
.a{stroke:#98a2ad;fill:#98a2ad}.b{stroke:#6fbf8b;fill:#6fbf8b}.c{stroke:#d99a5f;fill:#d99a5f}
.d{stroke:#7fb0f5;fill:#7fb0f5}.curve{fill:none}}`;

interface Point {
  readonly x: number;
  readonly y: number;
}

export function drawCurves(title: string, results: readonly PolicyResults[]): string {
  const curves = results.map(({ name, variants }) => ({
    name,
    points: variants
      .filter(({ meanWaitS, idleNodeHours }) => meanWaitS > 0.05 && idleNodeHours > 0)
      .map(({ meanWaitS: x, idleNodeHours: y }) => ({ x, y }))
      .sort((a, b) => a.x - b.x),
  }));
  const all = curves.flatMap(({ points }) => points);
  const x = scale(
    all.map((point) => point.x),
    AREA.left,
    WIDTH - AREA.right,
  );
  const y = scale(
    all.map((point) => point.y),
    HEIGHT - AREA.bottom,
    AREA.top,
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" role="img">`,
    `<title>${title}</title>`,
    `<style>${STYLE}</style>`,
    `<rect class="ground" width="${WIDTH}" height="${HEIGHT}"/>`,
    `<text class="title" x="${AREA.left}" y="24">${title}</text>`,
    ...x.ticks.map((tick) => line(x.at(tick), AREA.top, x.at(tick), HEIGHT - AREA.bottom)),
    ...y.ticks.map((tick) => line(AREA.left, y.at(tick), WIDTH - AREA.right, y.at(tick))),
    ...x.ticks.map((tick) => text(x.at(tick), HEIGHT - AREA.bottom + 18, 'middle', String(tick))),
    ...y.ticks.map((tick) => text(AREA.left - 8, y.at(tick) + 4, 'end', tick.toLocaleString('en'))),
    text((AREA.left + WIDTH - AREA.right) / 2, HEIGHT - 14, 'middle', 'mean wait of a job, seconds'),
    text(AREA.left, 42, 'start', 'idle node hours'),
    ...curves.flatMap(({ name, points }, index) => curve(name, index, points, x.at, y.at)),
    '</svg>',
    '',
  ].join('\n');
}

function curve(
  name: string,
  index: number,
  points: readonly Point[],
  x: (value: number) => number,
  y: (value: number) => number,
): string[] {
  const places = points.map((point) => `${x(point.x).toFixed(1)},${y(point.y).toFixed(1)}`);
  const colour = COLOURS[name] ?? 'a';
  const left = WIDTH - AREA.right - 110;
  const top = AREA.top + 20 + index * 20;
  return [
    `<polyline class="curve ${colour}" points="${places.join(' ')}"/>`,
    ...places.map((place) => {
      const [cx = '', cy = ''] = place.split(',');
      return `<circle class="${colour}" cx="${cx}" cy="${cy}" r="3"/>`;
    }),
    `<circle class="${colour}" cx="${left}" cy="${top - 4}" r="4"/>`,
    text(left + 12, top, 'start', name),
  ];
}

function scale(
  values: readonly number[],
  from: number,
  to: number,
): { readonly at: (value: number) => number; readonly ticks: readonly number[] } {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const [low, high] = [Math.log(least / 1.2), Math.log(most * 1.2)];
  const at = (value: number): number => from + ((Math.log(value) - low) / (high - low)) * (to - from);
  const ticks: number[] = [];
  for (let power = -2; power <= 7; power += 1) {
    for (const factor of [1, 2, 5]) {
      const tick = Number((factor * 10 ** power).toPrecision(1));
      if (Math.log(tick) > low && Math.log(tick) < high) ticks.push(tick);
    }
  }
  return { at, ticks };
}

function line(x1: number, y1: number, x2: number, y2: number): string {
  return `<line class="grid" x1="${x1.toFixed(1)}" y1="${y1.toFixed(1)}" x2="${x2.toFixed(1)}" y2="${y2.toFixed(1)}"/>`;
}

function text(x: number, y: number, anchor: string, content: string): string {
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}">${content}</text>`;
}
