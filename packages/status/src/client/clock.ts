/** Runs a function repeatedly at this interval. */
export function every(milliseconds: number, run: () => void): void {
  window.setInterval(run, milliseconds);
}

export function after(milliseconds: number, run: () => void): void {
  window.setTimeout(run, milliseconds);
}
