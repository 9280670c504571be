import { readTrace } from './trace.js';
import { replay } from './replay.js';
import type { ReadySettings } from '@nodepool/config';
const [file = '', day = '0', boot = '120'] = process.argv.slice(2);
const jobs = readTrace(file, Number(day));
const options = { bootMs: Number(boot) * 1000, maxIdleMs: 600_000 };
const none: ReadySettings = { min: 0, max: Infinity, spare: undefined, schedule: [], forecast: undefined };
const show = (name: string, s: ReadySettings) => {
  const t = Date.now();
  const r = replay(jobs, s, options);
  console.log(
    name.padEnd(16),
    r.jobs,
    'served',
    r.servedAtOnce.toFixed(4),
    'wait',
    r.meanWaitS.toFixed(2),
    'idle',
    r.idleNodeHours.toFixed(0),
    'unused',
    r.unused,
    Date.now() - t + 'ms',
  );
  return r;
};
const pts: [number, number][] = [];
for (const n of [0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48]) {
  const r = show('constant ' + n, { ...none, min: n });
  pts.push([r.meanWaitS, r.idleNodeHours]);
}
pts.sort((a, b) => a[0] - b[0]);
const interp = (w: number) => {
  for (let i = 1; i < pts.length; i++) {
    const [w1, i1] = pts[i - 1]!,
      [w2, i2] = pts[i]!;
    if (w1 <= w && w <= w2) return w2 > w1 ? i1 + ((i2 - i1) * (w - w1)) / (w2 - w1) : i1;
  }
  return NaN;
};
for (const p of [0.3, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.98, 0.99, 0.995]) {
  const r = show('forecast ' + p, { ...none, forecast: { servedAtOnce: p, affordable: Infinity } });
  console.log(
    '   const idle at this wait',
    interp(r.meanWaitS).toFixed(0),
    'ratio',
    (r.idleNodeHours / interp(r.meanWaitS)).toFixed(3),
  );
}
for (const n of [0, 1, 2]) show('spare ' + n, { ...none, spare: { nodes: n }, max: 12 });
for (const n of [0.05, 0.1, 0.2]) show('spare ' + n, { ...none, spare: { share: n }, max: 12 });
