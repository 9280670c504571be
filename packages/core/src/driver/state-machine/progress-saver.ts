/** Writes progress one write at a time; of the changes that come meanwhile, the last one is written. */

export class ProgressSaver {
  private current: Promise<void> | undefined;
  private again = false;

  /** `write` takes its snapshot when it is called. A write that fails is the last one, and is told to `onFailure`. */
  constructor(
    private readonly write: () => Promise<void>,
    private readonly onFailure: (error: unknown) => void,
  ) {}

  /** Writes now, or once more after the write that is under way. */
  request(): void {
    if (this.current === undefined) this.current = this.run();
    else this.again = true;
  }

  /** Drops what was not started. Gives the write that is under way; it never rejects. */
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
