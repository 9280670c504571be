/** Lock directories whose request is gone and for which nobody contends, kept up to date change by change. */
export class OrphanedLocks {
  private readonly directories = new Set<string>();
  private readonly orphans = new Set<string>();

  /** `isInUse`: whether the request is there, or its lock contended. */
  constructor(private readonly isInUse: (id: string) => boolean) {}

  ids(): Iterable<string> {
    return this.orphans.values();
  }

  directoryAdded(id: string): void {
    this.directories.add(id);
  }

  directoryRemoved(id: string): void {
    this.directories.delete(id);
  }

  /** To be called after every change around the id. True when its lock has become an orphan. */
  update(id: string): boolean {
    if (!this.directories.has(id) || this.isInUse(id)) {
      this.orphans.delete(id);
      return false;
    }
    const isNew = !this.orphans.has(id);
    this.orphans.add(id);
    return isNew;
  }
}
