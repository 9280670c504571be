/** A condition that callers wait for, e.g. that nothing runs. */

export class Latch {
  private waiters: (() => void)[] = [];

  constructor(private opened: boolean) {}

  get isOpen(): boolean {
    return this.opened;
  }

  /** Resolves all `wait`, and those that follow until `close`. */
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

  /** Resolves once the latch is open, also if it is closed again right after. */
  async wait(): Promise<void> {
    if (!this.opened) await new Promise<void>((resolve) => this.waiters.push(resolve));
  }
}
