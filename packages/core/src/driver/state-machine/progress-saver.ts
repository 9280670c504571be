/** Writes progress one write at a time. Changes during a write are combined into one further write. */

export class ProgressSaver {
  private current: Promise<void> | undefined;
  private again = false;

  /** `write` takes its snapshot when it is called. A failed write is reported to `onFailure` and ends the saver. */
  constructor(
    private readonly write: () => Promise<void>,
    private readonly onFailure: (error: unknown) => void,
  ) {}

  /** Writes now, or once more after the write in progress. */
  request(): void {
    if (this.current === undefined) this.current = this.run();
    else this.again = true;
  }

  /** Drops the pending write and returns the write in progress, which never rejects. */
  close(): Promise<void> | undefined {
    this.again = false;
    return this.current;
  }

  private async run(): Promise<void> {
    try {
      do {
        this.again = false;
        await this.write();
      } while (this.wanted());
      this.current = undefined;
    } catch (error) {
      this.onFailure(error);
    }
  }

  private wanted(): boolean {
    return this.again;
  }
}
