/** Scales of axes: round numbers and round times that fit the data. */

const MINUTE = 60;
const HOUR = 3600;
const DAY = 86_400;
const TIME_STEPS = [
  ...[0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30],
  ...[MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE],
  ...[HOUR, 2 * HOUR, 3 * HOUR, 4 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY],
];

/** Returns about `most` ticks of an axis of whole numbers from 0; the last one is not smaller than the value. */
export function countTicks(highest: number, most: number): number[] {
  const rough = Math.max(highest, 1) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, ([1, 2, 2.5, 5, 10].find((each) => each * power >= rough) ?? 10) * power);
  const whole = step === 2.5 ? 3 : step;
  const steps = Math.max(1, Math.ceil(highest / whole));
  return Array.from({ length: steps + 1 }, (_, index) => index * whole);
}

/** Returns a step between ticks in seconds, so that at most `most` ticks fit into the span. */
export function timeStep(span: number, most: number): number {
  return TIME_STEPS.find((step) => span / step <= most) ?? Math.ceil(span / most / DAY) * DAY;
}

/** Returns the times of day at which a chart has ticks; they are round in the viewer's time zone. */
export function clockTicks(from: number, to: number, most: number): number[] {
  const step = timeStep(to - from, most);
  const offset = new Date(from * 1000).getTimezoneOffset() * MINUTE;
  const first = Math.ceil((from - offset) / step) * step + offset;
  const ticks: number[] = [];
  for (let time = first; time <= to; time += step) ticks.push(time);
  return ticks;
}

/** Returns a coordinate with at most one decimal. */
export function rounded(value: number): number {
  return Math.round(value * 10) / 10;
}
