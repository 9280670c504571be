/** Uncontended lock directories whose request no longer exists, updated with every change. */
export class OrphanedLocks {
  private readonly directories = new Set<string>();
  private readonly orphans = new Set<string>();

  /** `isInUse` returns true if the request exists or its lock is contended. */
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

  /** Must be called after every change of the request or its lock. Returns true if the lock has become an orphan. */
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
