/** Time in the browser. */

/** Runs again and again, so many milliseconds apart. */
export function every(milliseconds: number, run: () => void): void {
  window.setInterval(run, milliseconds);
}

/** Runs once, so many milliseconds from now. */
export function after(milliseconds: number, run: () => void): void {
  window.setTimeout(run, milliseconds);
}
