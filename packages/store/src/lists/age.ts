/** The format of ages in every list and page. */

/**
 * Formats an age as `DD:HH:MM:SS`, with more digits of days if needed. A negative age (clocks differ) counts as zero.
 */
export function formatAge(seconds: number): string {
  const whole = Number.isFinite(seconds) ? Math.max(0, Math.floor(seconds)) : 0;
  const days = Math.floor(whole / 86_400);
  const hours = Math.floor(whole / 3600) % 24;
  const minutes = Math.floor(whole / 60) % 60;
  return [days, hours, minutes, whole % 60].map((part) => String(part).padStart(2, '0')).join(':');
}
