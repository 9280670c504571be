/** A condition that callers can wait for, e.g. that no task runs. */

export class Latch {
  private waiters: (() => void)[] = [];

  constructor(private opened: boolean) {}

  get isOpen(): boolean {
    return this.opened;
  }

  /** Resolves all current `wait` calls, and later ones until `close`. */
  open(): void {
    this.opened = true;
    if (this.waiters.length === 0) return;
    const { waiters } = this;
    this.waiters = [];
    for (const resolve of waiters) resolve();
  }

  close(): void {
    this.opened = false;
  }

  /** Resolves once the latch is open, even if it is closed again immediately. */
  async wait(): Promise<void> {
    if (!this.opened) await new Promise<void>((resolve) => this.waiters.push(resolve));
  }
}
