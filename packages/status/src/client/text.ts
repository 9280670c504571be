/** Formats numbers, times and durations. */

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Returns the age of something: whole seconds, or the two largest units, e.g. `3 h 5 min`. */
export function ageText(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < MINUTE) return `${whole} s`;
  if (whole < HOUR) return `${Math.floor(whole / MINUTE)} min`;
  if (whole < DAY) return parts(whole, HOUR, 'h', MINUTE, 'min');
  return parts(whole, DAY, 'd', HOUR, 'h');
}

/** Returns a measured duration, more precisely than an age: `18 ms`, `0.42 s`, `8.1 s`, `2 min 5 s`. */
export function durationText(seconds: number): string {
  const value = Math.max(0, seconds);
  if (value === 0) return '0 s';
  if (value < 0.1) return `${Math.max(1, Math.round(value * 1000))} ms`;
  if (Number.isInteger(value) && value < MINUTE) return `${value} s`;
  if (value < 1) return `${value.toFixed(2)} s`;
  if (value < 9.95) return `${value.toFixed(1)} s`;
  if (value < MINUTE - 0.5) return `${Math.round(value)} s`;
  const whole = Math.round(value);
  if (whole < HOUR) return parts(whole, MINUTE, 'min', 1, 's');
  return ageText(whole);
}

function parts(seconds: number, large: number, largeName: string, small: number, smallName: string): string {
  const rest = Math.floor((seconds % large) / small);
  const first = `${Math.floor(seconds / large)} ${largeName}`;
  return rest === 0 ? first : `${first} ${rest} ${smallName}`;
}

const NUMBER = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });

export function numberText(value: number): string {
  return NUMBER.format(value);
}

/** Returns an amount of a resource with its unit; amounts of `ram` are in MiB. */
export function amountText(resource: string, amount: number): string {
  if (resource !== 'ram') return numberText(amount);
  return amount < 1024 ? `${numberText(amount)} MiB` : `${numberText(amount / 1024)} GiB`;
}

export function bytesText(bytes: number): string {
  return amountText('ram', bytes / 1_048_576);
}

/** Returns a number with its noun, e.g. `1 node` or `2 nodes`. */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${numberText(count)} ${count === 1 ? noun : plural}`;
}

/** Returns a share in percent; a small share is never shown as none and a large one never as all. */
export function shareText(part: number, whole: number): string {
  if (whole <= 0 || part <= 0) return '0 %';
  if (part >= whole) return '100 %';
  const share = (part / whole) * 100;
  if (share < 1) return '< 1 %';
  return share > 99 ? '> 99 %' : `${Math.round(share)} %`;
}

const CLOCK = new Intl.DateTimeFormat([], { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
const CLOCK_WITH_SECONDS = new Intl.DateTimeFormat([], {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
});

/** Returns the hour and minute of a time in unix seconds, in the viewer's time zone. */
export function clockText(time: number): string {
  return CLOCK.format(time * 1000);
}

export function exactClockText(time: number): string {
  return CLOCK_WITH_SECONDS.format(time * 1000);
}
