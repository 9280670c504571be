/** Formats numbers, times and ages. */

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Returns the two largest units of a duration, e.g. `3 h 5 min`. */
export function ageText(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < MINUTE) return `${whole} s`;
  if (whole < HOUR) return `${Math.floor(whole / MINUTE)} min`;
  if (whole < DAY) return parts(whole, HOUR, 'h', MINUTE, 'min');
  return parts(whole, DAY, 'd', HOUR, 'h');
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

/** Returns a number with its noun, e.g. `1 node` or `2 nodes`. */
export function counted(count: number, noun: string): string {
  return `${numberText(count)} ${noun}${count === 1 ? '' : 's'}`;
}

const CLOCK = new Intl.DateTimeFormat([], { hour: '2-digit', minute: '2-digit', hour12: false });
const CLOCK_WITH_SECONDS = new Intl.DateTimeFormat([], {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hour12: false,
});

/** Returns the hour and minute of a time in unix seconds, in the viewer's time zone. */
export function clockText(time: number): string {
  return CLOCK.format(time * 1000);
}

export function exactClockText(time: number): string {
  return CLOCK_WITH_SECONDS.format(time * 1000);
}
