/** Ages as every list and page writes them. */

/** `DD:HH:MM:SS`; more digits of days when there are more. An age below zero (clocks differ) is zero. */
export function formatAge(seconds: number): string {
  const whole = Number.isFinite(seconds) ? Math.max(0, Math.floor(seconds)) : 0;
  const days = Math.floor(whole / 86_400);
  const hours = Math.floor(whole / 3600) % 24;
  const minutes = Math.floor(whole / 60) % 60;
  return [days, hours, minutes, whole % 60].map((part) => String(part).padStart(2, '0')).join(':');
}
